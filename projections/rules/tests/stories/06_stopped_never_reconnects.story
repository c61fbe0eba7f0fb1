# What is wanted to stop does not reconnect (P5).
register 1
status 1 ready
job web service 60s
plan web place 0 on 1
report 1 web[0]=running
miss 1
plan web unknown web[0]
stop-job web
plan web stop web[0]
show web[0]
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
6 NodeStatusChanged n1 ready -> disconnected
6 EvalCreated web node-update pending
7 PlanCommitted rejected 0
7 AllocsMarkedUnknown web[0]
7 EvalUpdated node-update complete
7 EvalAcked node-update
8 JobStopped web
8 EvalCreated web job-deregister pending
9 PlanCommitted rejected 0
9 AllocsStopped web[0]
9 EvalUpdated job-deregister complete
9 EvalAcked job-deregister
web[0] is wanted to stop, is unknown, was [unknown]

status 1 ready
report 1 web[0]=running
plan web reconnect web[0]
show web[0]
---
10 NodeStatusChanged n1 disconnected -> initializing
10 EvalCreated web node-update pending
11 AllocReported web[0] unknown -> running
11 EvalCreated web reconnect pending
12 PlanCommitted rejected 0
12 EvalUpdated node-update complete
12 EvalAcked node-update
web[0] is wanted to stop, is running, was [unknown]
