package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	nomad "github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"
)

const canaryJob = `
job "canary" {
  meta = {
    "pack.name"            = "hello"
    "pack.deployment_name" = "hello@latest"
  }
  group "g" {
    count = 1
    update {
      canary           = 1
      min_healthy_time = "0s"
    }
    network {
      port "http" {}
    }
    service {
      name     = "canary"
      provider = "nomad"
      tags     = ["http", "v1"]
      port     = "http"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello; while :; do sleep 0.2; done"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
`

// people is what the tools do that somebody sits in front of: one that finds, two that deploy, and two that look.
func people() []step {
	return []step{
		{"prometheus", "nomad_sd_configs: services, followed, with what labels are made of", discovery},
		{"levant", "plan, deploy, promote canaries by itself, dispatch, scale", levant},
		{"nomad-pack", "run, find again by meta, plan, stop, destroy", pack},
		{"damon", "lists of all namespaces, events, logs that are followed, restart and stop", damon},
		{"wander", "jobs, allocations, search, an interactive exec, a file", wander},
	}
}

func encoded(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// discovery is what Prometheus asks every 30 seconds; Debian builds it without.
func discovery(c *nomad.Client) {
	job := parsed(c, canaryJob)
	answer, _, err := c.Jobs().Register(job, nil)
	works("register", err)
	settled(c, answer.EvalID)
	all := &nomad.QueryOptions{AllowStale: true, Namespace: "default", Region: "global"}
	services, _, err := c.Services().List(all)
	works("services", err)
	require(len(services) == 1 && len(services[0].Services) == 1, "services: %s", encoded(services))
	instances, _, err := c.Services().Get(services[0].Services[0].ServiceName, all)
	works("service", err)
	require(len(instances) == 1, "%d instances", len(instances))
	one := instances[0]
	require(one.Address != "" && one.Port > 0 && one.Datacenter == "dc1" && one.NodeID != "" && one.JobID == "canary" &&
		one.Namespace == "default" && strings.Join(one.Tags, ",") == "http,v1", "instance: %s", encoded(one))
	remove(c, "canary")
}

func levant(c *nomad.Client) {
	job := parsed(c, canaryJob)
	answer, _, err := c.Jobs().Register(job, nil)
	works("register", err)
	settled(c, answer.EvalID)

	job.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
	plan, _, err := c.Jobs().Plan(job, true, nil)
	works("plan", err)
	require(plan.Annotations.DesiredTGUpdates["g"].Canary == 1, "plan: %+v", plan.Annotations.DesiredTGUpdates["g"])
	answer, _, err = c.Jobs().Register(job, nil)
	works("register", err)
	var deployment *nomad.Deployment
	until("a canary that is healthy", func() bool {
		deployment, _, err = c.Jobs().LatestDeployment("canary", nil)
		works("deployment", err)
		group := deployment.TaskGroups["g"]
		return deployment.JobModifyIndex == answer.JobModifyIndex && group.DesiredCanaries == 1 && group.HealthyAllocs == 1
	})
	_, _, err = c.Deployments().PromoteAll(deployment.ID, nil)
	works("promote", err)
	until("the deployment", func() bool {
		deployment, _, err = c.Deployments().Info(deployment.ID, nil)
		works("deployment", err)
		return deployment.Status == "successful"
	})
	_, _, err = c.Deployments().PromoteAll(deployment.ID, nil)
	refused("a second promotion", err, "terminal")

	_, _, err = c.Jobs().Register(parsed(c, `
job "batch" {
  type = "batch"
  parameterized {
    payload       = "required"
    meta_required = ["who"]
  }
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "1ms" }
      dispatch_payload { file = "in" }
    }
  }
}`), nil)
	works("register", err)
	_, _, err = c.Jobs().Dispatch("batch", nil, []byte("data"), "", nil)
	refused("a dispatch without its meta", err, "who")
	dispatched, _, err := c.Jobs().Dispatch("batch", map[string]string{"who": "me"}, []byte("data"), "", nil)
	works("dispatch", err)
	settled(c, dispatched.EvalID)
	remove(c, "batch")
}

func pack(c *nomad.Client) {
	listed, _, err := c.Jobs().ListOptions(&nomad.JobListOptions{Fields: &nomad.JobListFields{Meta: true}},
		&nomad.QueryOptions{Namespace: "*"})
	works("list", err)
	found := 0
	for _, stub := range listed {
		if stub.Meta["pack.deployment_name"] == "hello@latest" {
			found++
		}
	}
	require(found == 1, "%d jobs of the pack", found)
	job := parsed(c, canaryJob)
	conflict, _, err := c.Jobs().Info("canary", nil)
	works("info", err)
	plan, _, err := c.Jobs().PlanOpts(job, &nomad.PlanOptions{Diff: true, PolicyOverride: true}, nil)
	works("plan", err)
	require(plan.Diff.Type == "Edited" && plan.JobModifyIndex == *conflict.JobModifyIndex, "plan: %+v", plan.Diff)
	validation, _, err := c.Jobs().Validate(job, nil)
	works("validate", err)
	require(validation.Error == "", "validation: %s", validation.Error)
}

func damon(c *nomad.Client) {
	everywhere := &nomad.QueryOptions{Namespace: "*"}
	allocations, meta, err := c.Allocations().List(everywhere)
	works("allocations", err)
	deployments, _, err := c.Deployments().List(everywhere)
	works("deployments", err)
	require(len(deployments) > 0, "no deployments")
	running := runningOf(c, "canary")
	require(len(allocations) > 0 && running != nil, "no allocations")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events, err := c.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicAllocation: {"*"}}, meta.LastIndex+1, everywhere)
	works("events", err)

	stop := make(chan struct{})
	frames, failed := c.AllocFS().Logs(running, true, "t", "stdout", "start", 0, stop, everywhere)
	read := ""
	for !strings.Contains(read, "hello\n") {
		select {
		case frame := <-frames:
			require(frame != nil, "the log ended with %q", read)
			read += string(frame.Data)
		case err := <-failed:
			works("logs", err)
		case <-time.After(patience):
			panic(failure("no line of the log"))
		}
	}
	close(stop)

	works("restart", c.Allocations().Restart(running, "t", everywhere))
	stopped, err := c.Allocations().Stop(running, everywhere)
	works("stop", err)
	require(stopped.EvalID != "", "stopping has no evaluation")
	for done := false; !done; {
		batch, open := <-events
		require(open && batch.Err == nil, "the stream ended: %v", batch)
		for _, event := range batch.Events {
			allocation, err := event.Allocation()
			works("event", err)
			done = done || allocation.ID == running.ID && allocation.ClientStatus == "complete"
		}
	}
}

func wander(c *nomad.Client) {
	var running *nomad.Allocation
	until("the next allocation", func() bool {
		running = runningOf(c, "canary")
		return running != nil
	})
	found, _, err := c.Search().FuzzySearch("canar", contexts.All, &nomad.QueryOptions{Namespace: "*"})
	works("fuzzy search", err)
	require(len(found.Matches[contexts.Jobs]) == 1, "found: %+v", found.Matches)
	exact, _, err := c.Search().PrefixSearch(running.ID[:8], contexts.Allocs, nil)
	works("prefix search", err)
	require(len(exact.Matches[contexts.Allocs]) == 1, "found: %+v", exact.Matches)

	var out, wrong bytes.Buffer
	code, err := c.Allocations().Exec(context.Background(), running, "t", false,
		[]string{"/bin/sh", "-c", "read name; echo I am $name; echo oops >&2; exit 3"},
		strings.NewReader("wander\n"), &out, &wrong, nil, nil)
	works("exec", err)
	require(code == 3 && out.String() == "I am wander\n" && wrong.String() == "oops\n",
		"exec: %d, %q, %q", code, out.String(), wrong.String())
	files, _, err := c.AllocFS().List(running, "/alloc/logs", nil)
	works("ls", err)
	require(len(files) >= 2, "%d files of logs", len(files))
	content, err := c.AllocFS().Cat(running, "/alloc/logs/t.stdout.0", nil)
	works("cat", err)
	text, err := io.ReadAll(content)
	works("cat", err)
	require(string(text) == "hello\n", "log: %q", text)
	services, _, err := c.Services().Get("canary", &nomad.QueryOptions{Filter: `"v1" in Tags`})
	works("service", err)
	require(len(services) == 1 && services[0].AllocID == running.ID, "services: %+v", services)
	remove(c, "canary")
}

// runningOf is the job's allocation that runs, whole.
func runningOf(c *nomad.Client, job string) *nomad.Allocation {
	stubs, _, err := c.Jobs().Allocations(job, false, nil)
	works("allocations", err)
	for _, stub := range stubs {
		if stub.ClientStatus == "running" && stub.DesiredStatus == "run" {
			whole, _, err := c.Allocations().Info(stub.ID, nil)
			works("allocation", err)
			return whole
		}
	}
	return nil
}
