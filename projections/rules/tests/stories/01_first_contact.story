# A node introduces itself. It is not given work before it says that it is ready.
register 1
show 1
---
1 NodeRegistered n1
n1 is initializing, takes no work, 0 MHz taken

status 1 ready
show 1
---
2 NodeStatusChanged n1 initializing -> ready
n1 is ready, takes work, 0 MHz taken

# A steady heartbeat costs no log entry.
status 1 ready
---
nothing changes

# Registering again says who it is, never how it is.
register 1
register 1 r2
show 1
---
nothing changes
3 NodeUpdated n1
n1 is ready, takes work, 0 MHz taken
