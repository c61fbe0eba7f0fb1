# A report gets stuck on its way, and the node sends a newer one by another.
register 1
status 1 ready
job web service
plan web place 0 on 1
report 1 web[0]=running/0
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

# The older one arrives after all: a task that ran waits again only to be started once more.
report 1 web[0]=pending/0
---
nothing changes

report 1 web[0]=pending/1
report 1 web[0]=running/1
report 1 web[0]=complete/1
---
6 AllocReported web[0] running -> pending
7 AllocReported web[0] pending -> running
8 AllocReported web[0] running -> complete
8 EvalCreated web alloc-stop pending

# What ended does not run again.
report 1 web[0]=running/1
---
nothing changes
