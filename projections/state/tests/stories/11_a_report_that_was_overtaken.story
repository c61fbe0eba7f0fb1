# A report gets stuck on its way, and the node sends a newer one by another.
register 1
status 1 ready
job web service
plan web place 0 on 1
report 1 web[0]=running
report 1 web[0]=complete
---
1 NodeRegistered n1
2 NodeStatusChanged n1 initializing -> ready
3 JobRegistered web version 0
3 EvalCreated web job-register pending
4 PlanCommitted rejected 0
4 AllocsPlaced web[0] on n1
4 EvalUpdated job-register complete
4 EvalAcked job-register
5 AllocReported web[0] pending -> running
6 AllocReported web[0] running -> complete

# The older one arrives after all: what ended does not run again.
report 1 web[0]=running
---
nothing changes
