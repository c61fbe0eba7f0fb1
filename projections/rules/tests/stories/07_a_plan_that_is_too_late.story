# The plan gives an allocation up, but its node came back while the plan was made (P1).
register 1
status 1 ready
register 2
status 2 ready
job web service 60s
plan web place 0 on 1
report 1 web[0]=running
miss 1
plan web unknown web[0]
---
1 NodeRegistered n1
2 NodeStatusChanged n1 initializing -> ready
3 NodeRegistered n2
4 NodeStatusChanged n2 initializing -> ready
5 JobRegistered web version 0
5 EvalCreated web job-register pending
6 PlanCommitted rejected 0
6 AllocsPlaced web[0] on n1
6 EvalUpdated job-register complete
6 EvalAcked job-register
7 AllocReported web[0] pending -> running
8 NodeStatusChanged n1 ready -> disconnected
8 EvalCreated web node-update pending
9 PlanCommitted rejected 0
9 AllocsMarkedUnknown web[0]
9 EvalUpdated node-update complete
9 EvalAcked node-update

status 1 ready
evaluate web
plan web seen 9 replace web[0] on 2
show web[0]
show 2
---
10 NodeStatusChanged n1 disconnected -> initializing
10 EvalCreated web node-update pending
11 EvalCreated web job-register pending
rejected n1: the allocation or its node changed since the plan was made
12 PlanCommitted rejected 1
web[0] is wanted to run, is unknown, was [unknown]
n2 is ready, takes work, 0 MHz taken
