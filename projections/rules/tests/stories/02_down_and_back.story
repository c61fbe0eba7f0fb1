# Nothing on it may wait for its return: silence means down.
register 1
status 1 ready
job web service
plan web place 0 on 1
report 1 web[0]=running
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

miss 1
miss 1
---
6 NodeStatusChanged n1 ready -> down
6 EvalCreated web node-update pending
nothing changes

# It comes back before anybody looked: what it runs could be older than what was decided, so it waits (P2).
status 1 ready
status 1 ready
show 1
---
7 NodeStatusChanged n1 down -> initializing
7 EvalCreated web node-update pending
7 AllocsMarkedUnknown web[0]
nothing changes
n1 is initializing, takes no work, 100 MHz taken

# It tells how its allocations are, even if that is nothing new. Now it may have work again.
report 1 web[0]=running
status 1 ready
show 1
---
8 AllocReported web[0] unknown -> running
8 EvalCreated web reconnect pending
9 NodeStatusChanged n1 initializing -> ready
9 EvalCreated web node-update pending
n1 is ready, takes work, 100 MHz taken
