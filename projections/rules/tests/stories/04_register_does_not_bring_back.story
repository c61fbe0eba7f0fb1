# Register says nothing about being there: the status stays (P2).
register 1
status 1 ready
job web service 60s
plan web place 0 on 1
report 1 web[0]=running
miss 1
register 1
register 1 r7
show 1
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
nothing changes
7 NodeUpdated n1
7 EvalCreated web node-update pending
n1 is disconnected, takes no work, 100 MHz taken
