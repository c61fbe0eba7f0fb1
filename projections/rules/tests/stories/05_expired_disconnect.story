# A disconnected node is looked at again, until nothing waits for it any more.
register 1
status 1 ready
job web service 60s
plan web place 0 on 1
report 1 web[0]=running
miss 1
plan web unknown web[0]
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

miss 1
---
nothing changes

after 61s
miss 1
---
the clock moves 61s
8 NodeStatusChanged n1 disconnected -> down
8 EvalCreated web node-update pending
