register 1
status 1 ready
job web service
plan web place 0 on 1
forget 1
---
1 NodeRegistered n1
2 NodeStatusChanged n1 initializing -> ready
3 JobRegistered web version 0
3 EvalCreated web job-register pending
4 PlanCommitted rejected 0
4 AllocsPlaced web[0] on n1
4 EvalUpdated job-register complete
4 EvalAcked job-register
5 NodeDeregistered n1
5 EvalCreated web node-update pending

# It may introduce itself again, as a new node.
register 1
show 1
---
6 NodeRegistered n1
n1 is initializing, takes no work, 0 MHz taken

# One that nobody knows cannot be forgotten.
forget 2
---
refused: node not found
