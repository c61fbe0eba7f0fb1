# An allocation takes room until its node says that it ended.
register 1
status 1 ready
job web service
plan web place 0 on 1
show 1
report 1 web[0]=running
evaluate web
plan web stop web[0]
show 1
report 1 web[0]=complete
show 1
show web
---
1 NodeRegistered n1
2 NodeStatusChanged n1 initializing -> ready
3 JobRegistered web version 0
3 EvalCreated web job-register pending
4 PlanCommitted rejected 0
4 AllocsPlaced web[0] on n1
4 EvalUpdated job-register complete
4 EvalAcked job-register
n1 is ready, takes work, 100 MHz taken
5 AllocReported web[0] pending -> running
6 EvalCreated web job-register pending
7 PlanCommitted rejected 0
7 AllocsStopped web[0]
7 EvalUpdated job-register complete
7 EvalAcked job-register
n1 is ready, takes work, 100 MHz taken
8 AllocReported web[0] running -> complete
n1 is ready, takes work, 0 MHz taken
web is dead, 0 live

# A purged job is forgotten with all it had; the evaluation that was asked for ends with it.
purge-job web
show 1
---
9 EvalCreated web job-deregister pending
9 JobPurged web
n1 is ready, takes work, 0 MHz taken
