# Three evaluations of one job wait. The first is done: of the others only the newest is worth running (P7).
job web service
evaluate web
evaluate web
plan web
---
1 JobRegistered web version 0
1 EvalCreated web job-register pending
2 EvalCreated web job-register pending
3 EvalCreated web job-register pending
4 EvalUpdated job-register complete
4 EvalAcked job-register
4 EvalsCanceled job-register (canceled after more recent eval was processed)

# The last one finds nothing more to cancel.
plan web
---
5 EvalUpdated job-register complete
5 EvalAcked job-register
