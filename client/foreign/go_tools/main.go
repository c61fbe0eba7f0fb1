// Sends what the Terraform provider, the autoscaler and the tools around jobs send, by the library that they are built
// on, and checks what they check. The tools themselves are in no registry of packages: docs/tools.md says for each of
// them which of its calls are here.
//
// Usage: go_tools, with NOMAD_ADDR of an agent whose access control is on and has no token yet.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

// A step is something that a tool gets done. It panics with a failure.
type step struct {
	tool, does string
	run        func(*nomad.Client)
}

type failure string

// patience bounds every wait here. The agent answers in milliseconds; a busy machine may not.
const patience = 60 * time.Second

func main() {
	client, err := nomad.NewClient(nomad.DefaultConfig())
	if err != nil {
		fmt.Println("FAILED ", err)
		os.Exit(1)
	}
	steps := append(terraform(), autoscaler()...)
	steps = append(steps, people()...)
	failed := false
	for _, s := range steps {
		if why := attempt(s, client); why != "" {
			failed = true
			fmt.Printf("FAILED  %s: %s: %s\n", s.tool, s.does, why)
			continue
		}
		fmt.Printf("ok      %s: %s\n", s.tool, s.does)
	}
	if failed {
		os.Exit(1)
	}
}

func attempt(s step, client *nomad.Client) (why string) {
	defer func() {
		switch was := recover().(type) {
		case nil:
		case failure:
			why = string(was)
		default:
			panic(was)
		}
	}()
	s.run(client)
	return ""
}

func require(holds bool, format string, of ...any) {
	if !holds {
		panic(failure(fmt.Sprintf(format, of...)))
	}
}

func works(what string, err error) {
	require(err == nil, "%s: %v", what, err)
}

// refused is how these tools recognize an answer: by its status and words in the error's text.
func refused(what string, err error, words ...string) {
	require(err != nil, "%s: was not refused", what)
	for _, word := range words {
		require(strings.Contains(err.Error(), word), "%s: %q does not say %q", what, err, word)
	}
}

// until asks again, as these tools do, until what it asks for holds.
func until(what string, holds func() bool) {
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		require(time.Now().Before(end), "%s did not come about in %v", what, patience)
	}
}

func pointer[T any](value T) *T { return &value }

// parsed is how every one of these tools gets a job out of a file: the server reads it.
func parsed(client *nomad.Client, source string) *nomad.Job {
	job, err := client.Jobs().ParseHCLOpts(&nomad.JobsParseRequest{JobHCL: source, Canonicalize: true})
	works("parse", err)
	return job
}

// settled follows a registration to its end, as the provider does unless `detach` is set.
func settled(client *nomad.Client, evaluation string) *nomad.Deployment {
	var deployment string
	until("the end of evaluation "+evaluation, func() bool {
		eval, _, err := client.Evaluations().Info(evaluation, nil)
		works("evaluation", err)
		require(eval.Status != "failed" && eval.Status != "canceled", "evaluation is %s", eval.Status)
		deployment = eval.DeploymentID
		return eval.Status == "complete"
	})
	if deployment == "" {
		return nil
	}
	query := &nomad.QueryOptions{WaitTime: 5 * time.Second}
	for end := time.Now().Add(patience); ; {
		answer, meta, err := client.Deployments().Info(deployment, query)
		works("deployment", err)
		switch answer.Status {
		case "successful":
			return answer
		case "failed", "cancelled", "paused":
			panic(failure("deployment is " + answer.Status + ": " + answer.StatusDescription))
		}
		require(time.Now().Before(end), "deployment %s is still %s", deployment, answer.Status)
		query.WaitIndex = meta.LastIndex
	}
}

func remove(client *nomad.Client, job string) {
	_, _, err := client.Jobs().DeregisterOpts(job, &nomad.DeregisterOptions{Purge: true}, nil)
	works("deregister "+job, err)
}
