# Something on it may be waited for: silence means disconnected.
register 1
status 1 ready
job web service 60s
plan web place 0 on 1
report 1 web[0]=running
miss 1
plan web unknown web[0]
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
web[0] is wanted to run, is unknown, was [unknown]

# What it says now may be older than what was decided: refused, nothing is written (P3).
report 1 web[0]=failed
---
refused: node 90de0000-0000-0000-0000-000000000001 is not allowed to update allocs while in status disconnected

# It asks for work first: not yet, however often it asks.
status 1 ready
status 1 ready
show 1
---
8 NodeStatusChanged n1 disconnected -> initializing
8 EvalCreated web node-update pending
nothing changes
n1 is initializing, takes no work, 100 MHz taken

# It tells what it runs: recognised by what the servers know, once (P4).
report 1 web[0]=running
plan web
plan web reconnect web[0]
report 1 web[0]=running
show web[0]
---
9 AllocReported web[0] unknown -> running
9 EvalCreated web reconnect pending
10 EvalUpdated node-update complete
10 EvalAcked node-update
11 PlanCommitted rejected 0
11 AllocsReconnected web[0]
11 EvalUpdated reconnect complete
11 EvalAcked reconnect
12 NodeAllocsReported n1
web[0] is wanted to run, is running, was [unknown running]

status 1 ready
show 1
---
13 NodeStatusChanged n1 initializing -> ready
13 EvalCreated web node-update pending
n1 is ready, takes work, 100 MHz taken
