package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

const scaledJob = `
job "scaled" {
  group "g" {
    count = 1
    scaling {
      enabled = true
      min     = 1
      max     = 4
      policy {
        cooldown = "1m"
        check "cpu" {
          source = "nomad-apm"
          query  = "avg_cpu"
          strategy "target-value" {
            target = 70
          }
        }
      }
    }
    update {
      min_healthy_time = "0s"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
`

// autoscaler is what the agent does in turn: it leads by a lock, watches policies, reads metrics, scales groups, and
// drains and purges nodes.
func autoscaler() []step {
	name := func(does string, run func(*nomad.Client)) step { return step{"autoscaler", does, run} }
	return []step{
		name("high availability: a variable's lock is held, renewed, refused to a second one, released", lease),
		name("policies: watched by index, created, changed, gone with their job", policies),
		name("target nomad-target: scale a group, its status and events, out of bounds", scale),
		name("APM nomad-apm: statistics of allocations and of nodes", statistics),
		name("cluster targets: choose a node, make it ineligible, drain, follow the drain, purge", cluster),
	}
}

func lease(c *nomad.Client) {
	lock := nomad.Variable{Path: "autoscaler/lock", Lock: &nomad.VariableLock{TTL: "10s"}}
	first, err := c.Locks(nomad.WriteOptions{}, lock)
	works("locks", err)
	second, err := c.Locks(nomad.WriteOptions{}, lock)
	works("locks", err)
	_, err = first.Acquire(context.Background())
	works("acquire", err)
	_, err = second.Acquire(context.Background())
	refused("a lock that is held", err, "conflict")
	works("renew", first.Renew(context.Background()))
	works("release", first.Release(context.Background()))
	_, err = second.Acquire(context.Background())
	works("acquire what was released", err)
	works("release", second.Release(context.Background()))
	_, err = c.Variables().Delete("autoscaler/lock", nil)
	works("delete", err)
}

func policies(c *nomad.Client) {
	query := &nomad.QueryOptions{WaitTime: 5 * time.Second}
	before, meta, err := c.Scaling().ListPolicies(query)
	works("list", err)
	require(len(before) == 0, "%d policies", len(before))

	// A blocking query that began before the job is there ends with it.
	found := make(chan *nomad.ScalingPolicyListStub)
	go func() {
		defer close(found)
		query := &nomad.QueryOptions{WaitTime: 5 * time.Second, WaitIndex: meta.LastIndex}
		for end := time.Now().Add(patience); time.Now().Before(end); {
			list, meta, err := c.Scaling().ListPolicies(query)
			if err != nil {
				return
			}
			if len(list) > 0 {
				found <- list[0]
				return
			}
			query.WaitIndex = meta.LastIndex
		}
	}()
	answer, _, err := c.Jobs().Register(parsed(c, scaledJob), nil)
	works("register", err)
	stub := <-found
	require(stub != nil, "no policy was seen")
	require(stub.Enabled && stub.Type == "horizontal" && stub.Target["Job"] == "scaled" && stub.Target["Group"] == "g",
		"policy: %+v", stub)
	policy, _, err := c.Scaling().GetPolicy(stub.ID, nil)
	works("get", err)
	require(*policy.Min == 1 && *policy.Max == 4, "policy: %+v", policy)
	// Blocks of the policy come as lists of maps: what the autoscaler's parser expects.
	checks, listed := policy.Policy["check"].([]any)
	require(listed && policy.Policy["cooldown"] == "1m", "policy: %+v", policy.Policy)
	require(strings.Contains(encoded(checks[0]), "avg_cpu"), "check: %+v", checks[0])
	settled(c, answer.EvalID)

	wider := parsed(c, scaledJob)
	wider.TaskGroups[0].Scaling.Max = pointer(int64(8))
	answer, _, err = c.Jobs().Register(wider, nil)
	works("register", err)
	settled(c, answer.EvalID)
	same, _, err := c.Scaling().GetPolicy(stub.ID, nil)
	works("get", err)
	require(*same.Max == 8 && same.ModifyIndex > policy.ModifyIndex, "policy: %+v", same)
}

func scale(c *nomad.Client) {
	status, _, err := c.Jobs().ScaleStatus("scaled", nil)
	works("status", err)
	require(status.TaskGroups["g"].Desired == 1, "status: %+v", status.TaskGroups["g"])
	meta := map[string]any{"nomad_autoscaler.reason.history": []string{"scaling up"}, "nomad_autoscaler.count.capped": true}
	answer, _, err := c.Jobs().Scale("scaled", "g", pointer(3), "scaling up because factor is 3", false, meta, nil)
	works("scale", err)
	settled(c, answer.EvalID)
	status, _, err = c.Jobs().ScaleStatus("scaled", nil)
	works("status", err)
	group := status.TaskGroups["g"]
	require(group.Desired == 3 && group.Running == 3, "status: %+v", group)
	event := group.Events[0]
	require(*event.Count == 3 && event.PreviousCount == 1 && event.Meta["nomad_autoscaler.count.capped"] == true,
		"event: %+v", event)

	_, _, err = c.Jobs().Scale("scaled", "g", pointer(9), "too many", false, nil, nil)
	refused("more than the policy's maximum", err, "400", "9")
	_, _, err = c.Jobs().Scale("scaled", "none", pointer(1), "", false, nil, nil)
	refused("a group that is not there", err, "400")
	// A dry run, and a failed check: only an event, and no evaluation.
	noted, _, err := c.Jobs().Scale("scaled", "g", nil, "failed to scale target", true, nil, nil)
	works("note", err)
	require(noted.EvalID == "", "a note has evaluation %s", noted.EvalID)
	status, _, err = c.Jobs().ScaleStatus("scaled", nil)
	works("status", err)
	require(status.TaskGroups["g"].Desired == 3 && status.TaskGroups["g"].Events[0].Error, "%+v", status.TaskGroups["g"])
	_, _, err = c.Jobs().ScaleStatus("none", nil)
	refused("a job that is not there", err, "404")
}

func statistics(c *nomad.Client) {
	allocations, _, err := c.Jobs().Allocations("scaled", false, nil)
	works("allocations", err)
	for _, stub := range allocations {
		until("statistics of "+stub.ID, func() bool {
			usage, err := c.Allocations().Stats(&nomad.Allocation{ID: stub.ID, NodeID: stub.NodeID}, nil)
			return err == nil && usage.ResourceUsage != nil && usage.ResourceUsage.MemoryStats.RSS > 0
		})
	}
	// Free room of a pool: what nodes have, less what allocations take.
	nodes, _, err := c.Nodes().List(&nomad.QueryOptions{Params: map[string]string{"resources": "true"}})
	works("nodes", err)
	require(nodes[0].NodeResources.Cpu.CpuShares > 0 && nodes[0].NodeResources.Memory.MemoryMB > 0, "%+v", nodes[0])
	taken, _, err := c.Nodes().Allocations(nodes[0].ID, nil)
	works("allocations of the node", err)
	memory := int64(0)
	for _, allocation := range taken {
		if allocation.ClientStatus == "running" {
			memory += allocation.AllocatedResources.Tasks["t"].Memory.MemoryMB
		}
	}
	require(memory == 3*16, "%d MiB are taken", memory)
}

func cluster(c *nomad.Client) {
	nodes, _, err := c.Nodes().List(nil)
	works("nodes", err)
	id := nodes[0].ID
	node, _, err := c.Nodes().Info(id, nil)
	works("node", err)
	// By such an attribute the node's machine is found.
	require(node.Attributes["unique.hostname"] != "", "no unique.hostname")

	eligibility, err := c.Nodes().ToggleEligibility(id, false, nil)
	works("eligibility", err)
	_, err = c.Nodes().ToggleEligibility(id, true, nil)
	works("eligibility", err)
	require(eligibility.NodeModifyIndex > 0, "%+v", eligibility)

	drain, err := c.Nodes().UpdateDrainOpts(id, &nomad.DrainOptions{
		DrainSpec: &nomad.DrainSpec{Deadline: 15 * time.Minute, IgnoreSystemJobs: true},
		Meta:      map[string]string{"autoscaler.policy": "cluster"},
	}, nil)
	works("drain", err)
	remove(c, "scaled")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last string
	for message := range c.Nodes().MonitorDrain(ctx, id, drain.NodeModifyIndex, true) {
		require(message.Level != nomad.MonitorMsgLevelError, "drain: %s", message)
		last = message.String()
	}
	require(ctx.Err() == nil, "the drain did not end; last: %s", last)
	until("the drain's end", func() bool {
		node, _, err = c.Nodes().Info(id, nil)
		works("node", err)
		return node.LastDrain != nil && node.LastDrain.Status == nomad.DrainStatusComplete
	})
	require(node.LastDrain.Meta["autoscaler.policy"] == "cluster", "%+v", node.LastDrain)
	require(node.SchedulingEligibility == "ineligible", "a node that was drained is %s", node.SchedulingEligibility)

	// Purged, it comes back: its agent is still there. The autoscaler would have ended the machine.
	purged, _, err := c.Nodes().Purge(id, nil)
	works("purge", err)
	require(purged.NodeModifyIndex > 0, "%+v", purged)
	until("the node", func() bool {
		node, _, err := c.Nodes().Info(id, nil)
		return err == nil && node.Status == "ready"
	})
	_, err = c.Nodes().ToggleEligibility(id, true, nil)
	works("eligibility", err)
	self, err := c.Agent().Self()
	works("agent", err)
	require(self.Member.Name != "" && self.Config["Region"] == "global", "agent: %s", strconv.Quote(encoded(self.Member)))
}
