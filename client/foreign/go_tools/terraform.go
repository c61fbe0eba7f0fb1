package main

import (
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

const webJob = `
job "web" {
  group "g" {
    count = 2
    update {
      min_healthy_time = "0s"
    }
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
`

// terraform is the provider's resources and data sources, in the order in which somebody's configuration would name
// them: each is created, read back, changed, read by its data source, and destroyed.
func terraform() []step {
	name := func(does string, run func(*nomad.Client)) step { return step{"terraform", does, run} }
	return []step{
		name("bootstrap, nomad_acl_token of the provider itself", func(c *nomad.Client) {
			token, _, err := c.ACLTokens().Bootstrap(nil)
			works("bootstrap", err)
			c.SetSecretID(token.SecretID)
			_, _, err = c.ACLTokens().Bootstrap(nil)
			refused("a second bootstrap", err, "ACL bootstrap already done")
		}),
		name("nomad_namespace, nomad_namespaces", namespaces),
		name("nomad_node_pool, nomad_node_pools", nodePools),
		name("nomad_job: plan, register, monitor, update, destroy", job),
		name("nomad_job: a plan that is out of date, a job that is wrong", jobRefused),
		name("nomad_job_v2's jobs as JSON, nomad_job data source, nomad_job_parser", jobData),
		name("nomad_variable, nomad_variable data source", variable),
		name("nomad_acl_policy, nomad_acl_role, nomad_acl_token", accessControl),
		name("nomad_acl_auth_method, nomad_acl_binding_rule", authMethods),
		name("nomad_scheduler_config, nomad_scheduler_policy", schedulerConfig),
		name("nomad_dynamic_host_volume", hostVolume),
		name("nomad_csi_volume, nomad_plugin: none there", csiVolume),
		name("nomad_quota_specification, nomad_sentinel_policy: not in a community server", enterprise),
		name("nomad_regions, nomad_datacenters, nomad_deployments, nomad_allocations, nomad_jwks", dataSources),
	}
}

func namespaces(c *nomad.Client) {
	space := &nomad.Namespace{
		Name: "team", Description: "a team", Meta: map[string]string{"owner": "ops"},
		Capabilities: &nomad.NamespaceCapabilities{DisabledTaskDrivers: []string{"raw_exec"}},
	}
	_, err := c.Namespaces().Register(space, nil)
	works("register", err)
	read, _, err := c.Namespaces().Info("team", nil)
	works("info", err)
	require(read.Description == "a team" && read.Meta["owner"] == "ops", "read back: %+v", read)
	require(len(read.Capabilities.DisabledTaskDrivers) == 1, "capabilities: %+v", read.Capabilities)

	space.Description = "the team"
	_, err = c.Namespaces().Register(space, nil)
	works("update", err)
	all, _, err := c.Namespaces().List(nil)
	works("list", err)
	require(len(all) == 2, "%d namespaces", len(all))
	_, err = c.Namespaces().Delete("team", nil)
	works("delete", err)
	_, _, err = c.Namespaces().Info("team", nil)
	// The provider takes a resource out of its state by this status.
	refused("a namespace that is gone", err, "404")
	_, err = c.Namespaces().Register(&nomad.Namespace{Name: "no spaces"}, nil)
	refused("a name with a space", err, "invalid name")
}

func nodePools(c *nomad.Client) {
	pool := &nomad.NodePool{Name: "gpu", Description: "with GPUs", Meta: map[string]string{"rack": "1"}}
	_, err := c.NodePools().Register(pool, nil)
	works("register", err)
	read, _, err := c.NodePools().Info("gpu", nil)
	works("info", err)
	require(read.Description == "with GPUs" && read.Meta["rack"] == "1", "read back: %+v", read)
	some, _, err := c.NodePools().List(&nomad.QueryOptions{Prefix: "g", Filter: `Meta.rack == "1"`})
	works("list", err)
	require(len(some) == 1 && some[0].Name == "gpu", "listed: %d", len(some))
	_, err = c.NodePools().Delete("gpu", nil)
	works("delete", err)
	_, _, err = c.NodePools().Info("gpu", nil)
	refused("a pool that is gone", err, "404")
	_, err = c.NodePools().Delete("all", nil)
	refused("a pool that is built in", err, "all")
}

func job(c *nomad.Client) {
	wanted := parsed(c, webJob)
	plan, _, err := c.Jobs().PlanOpts(wanted, &nomad.PlanOptions{Diff: true, PolicyOverride: false}, nil)
	works("plan", err)
	require(plan.JobModifyIndex == 0 && plan.Diff != nil && plan.Diff.Type == "Added", "plan: %+v", plan)

	submission := &nomad.JobSubmission{Source: webJob, Format: "hcl2"}
	answer, _, err := c.Jobs().RegisterOpts(wanted, &nomad.RegisterOptions{
		EnforceIndex: true, ModifyIndex: plan.JobModifyIndex, Submission: submission,
	}, nil)
	works("register", err)
	deployment := settled(c, answer.EvalID)
	require(deployment != nil, "no deployment")
	require(deployment.JobID == "web" && deployment.JobModifyIndex == answer.JobModifyIndex, "%+v", deployment)

	read, _, err := c.Jobs().Info("web", nil)
	works("info", err)
	require(*read.Status == "running" && *read.JobModifyIndex == answer.JobModifyIndex, "job: %s", *read.Status)
	stored, _, err := c.Jobs().Submission("web", int(*read.Version), nil)
	works("submission", err)
	require(stored.Source == webJob, "the source came back as %q", stored.Source)
	allocations, _, err := c.Jobs().Allocations("web", false, nil)
	works("allocations", err)
	require(len(allocations) == 2, "%d allocations", len(allocations))

	// Nothing changes: what a second `terraform plan` has to find.
	plan, _, err = c.Jobs().PlanOpts(wanted, &nomad.PlanOptions{Diff: true}, nil)
	works("plan again", err)
	require(plan.Diff.Type == "None", "a job that did not change differs: %+v", plan.Diff)
	require(plan.JobModifyIndex == answer.JobModifyIndex, "plan is of index %d", plan.JobModifyIndex)

	wanted.TaskGroups[0].Count = pointer(3)
	answer, _, err = c.Jobs().RegisterOpts(wanted, &nomad.RegisterOptions{
		EnforceIndex: true, ModifyIndex: plan.JobModifyIndex, Submission: submission,
	}, nil)
	works("update", err)
	settled(c, answer.EvalID)
	allocations, _, err = c.Jobs().Allocations("web", false, nil)
	works("allocations", err)
	require(len(allocations) == 3, "%d allocations after the update", len(allocations))

	// `deregister_on_destroy`, with and without `purge_on_destroy`.
	_, _, err = c.Jobs().DeregisterOpts("web", &nomad.DeregisterOptions{Purge: false}, nil)
	works("stop", err)
	read, _, err = c.Jobs().Info("web", nil)
	works("info", err)
	// The provider takes a stopped job for one that is gone.
	require(*read.Stop, "a job that was stopped is not")
	remove(c, "web")
	_, _, err = c.Jobs().Info("web", nil)
	refused("a job that is gone", err, "404", "not found")
}

func jobRefused(c *nomad.Client) {
	_, _, err := c.Jobs().RegisterOpts(parsed(c, webJob), &nomad.RegisterOptions{EnforceIndex: true, ModifyIndex: 7}, nil)
	refused("a registration of an old index", err, "Enforcing job modify index", "job does not exist")
	_, _, err = c.Jobs().Info("web", nil)
	refused("what was refused", err, "404")

	_, err = c.Jobs().ParseHCLOpts(&nomad.JobsParseRequest{JobHCL: `job "web" { group`})
	refused("a file that ends in the middle", err, "400")
	broken := parsed(c, webJob)
	broken.TaskGroups[0].Tasks = nil
	validation, _, err := c.Jobs().Validate(broken, nil)
	works("validate", err)
	require(validation.Error != "" && len(validation.ValidationErrors) > 0, "validated: %+v", validation)
	_, _, err = c.Jobs().RegisterOpts(broken, nil, nil)
	refused("a job without tasks", err, "400", "tasks")
}

func jobData(c *nomad.Client) {
	// A job whose values come from `hcl2 { vars }`.
	answer, err := c.Jobs().ParseHCLOpts(&nomad.JobsParseRequest{
		JobHCL: `
variable "memory" {
  type = number
}
job "data" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "1ms" }
      resources {
        memory = var.memory
      }
    }
  }
}`,
		Variables: "memory = 33", Canonicalize: true,
	})
	works("parse", err)
	require(*answer.TaskGroups[0].Tasks[0].Resources.MemoryMB == 33, "the variable has no effect")
	registered, _, err := c.Jobs().RegisterOpts(answer, &nomad.RegisterOptions{}, nil)
	works("register", err)
	require(settled(c, registered.EvalID) == nil, "a batch job has a deployment")
	until("the job's end", func() bool {
		read, _, err := c.Jobs().Info("data", &nomad.QueryOptions{Namespace: "default"})
		works("info", err)
		return *read.Status == "dead"
	})
	listed, _, err := c.Jobs().PrefixList("dat")
	works("list", err)
	require(len(listed) == 1 && listed[0].JobSummary.Summary["g"].Complete == 1, "listed: %+v", listed)
	remove(c, "data")
}

func variable(c *nomad.Client) {
	value := &nomad.Variable{Namespace: "default", Path: "app/config", Items: map[string]string{"user": "me", "key": "k"}}
	created, _, err := c.Variables().Create(value, nil)
	works("create", err)
	require(created.ModifyIndex > 0, "%+v", created)
	read, _, err := c.Variables().Read("app/config", nil)
	works("read", err)
	require(read.Items["user"] == "me", "read back: %+v", read.Items)
	read.Items = map[string]string{"user": "you"}
	_, _, err = c.Variables().CheckedUpdate(read, nil)
	works("update", err)
	_, _, err = c.Variables().CheckedUpdate(read, nil)
	refused("an update of an old index", err, "conflict")
	peeked, _, err := c.Variables().Peek("app/none", nil)
	works("peek", err)
	require(peeked == nil, "there is %+v", peeked)
	_, err = c.Variables().Delete("app/config", nil)
	works("delete", err)
	_, _, err = c.Variables().Read("app/config", nil)
	refused("a variable that is gone", err, "variable not found")
}

func accessControl(c *nomad.Client) {
	policy := &nomad.ACLPolicy{
		Name: "dev", Description: "developers", Rules: `namespace "default" { policy = "read" }`,
		JobACL: &nomad.JobACL{Namespace: "default", JobID: "web"},
	}
	_, err := c.ACLPolicies().Upsert(policy, nil)
	works("policy", err)
	read, _, err := c.ACLPolicies().Info("dev", nil)
	works("read policy", err)
	require(read.Rules == policy.Rules && read.JobACL.JobID == "web", "policy: %+v", read)
	_, err = c.ACLPolicies().Upsert(&nomad.ACLPolicy{Name: "bad", Rules: "namespace {"}, nil)
	refused("rules that are none", err, "failed to parse")

	role, _, err := c.ACLRoles().Create(&nomad.ACLRole{Name: "devs", Policies: []*nomad.ACLRolePolicyLink{{Name: "dev"}}}, nil)
	works("role", err)
	token, _, err := c.ACLTokens().Create(&nomad.ACLToken{
		Name: "ci", Type: "client", Roles: []*nomad.ACLTokenRoleLink{{ID: role.ID}}, ExpirationTTL: time.Hour,
	}, nil)
	works("token", err)
	require(token.SecretID != "" && token.ExpirationTime != nil, "token: %+v", token)
	back, _, err := c.ACLTokens().Info(token.AccessorID, nil)
	works("read token", err)
	require(back.SecretID == token.SecretID && back.Roles[0].Name == "devs", "token: %+v", back)

	// What it may and what it may not.
	limited := &nomad.QueryOptions{AuthToken: token.SecretID}
	_, _, err = c.Jobs().List(limited)
	works("list with the token", err)
	_, _, err = c.Nodes().List(limited)
	refused("nodes with the token", err, "403", "Permission denied")
	self, _, err := c.ACLTokens().Self(limited)
	works("self", err)
	require(self.AccessorID == token.AccessorID, "self: %+v", self)

	back.Name = "build"
	_, _, err = c.ACLTokens().Update(back, nil)
	works("update token", err)
	role.Description = "all developers"
	_, _, err = c.ACLRoles().Update(role, nil)
	works("update role", err)
	byName, _, err := c.ACLRoles().GetByName("devs", nil)
	works("role by name", err)
	require(byName.ID == role.ID && byName.Description == "all developers", "role: %+v", byName)

	_, err = c.ACLTokens().Delete(token.AccessorID, nil)
	works("delete token", err)
	_, _, err = c.ACLTokens().Info(token.AccessorID, nil)
	refused("a token that is gone", err, "404")
	_, err = c.ACLRoles().Delete(role.ID, nil)
	works("delete role", err)
	_, err = c.ACLPolicies().Delete("dev", nil)
	works("delete policy", err)
	_, _, err = c.ACLPolicies().Info("dev", nil)
	refused("a policy that is gone", err, "404")
}

func authMethods(c *nomad.Client) {
	method := &nomad.ACLAuthMethod{
		Name: "sso", Type: "OIDC", TokenLocality: "local", MaxTokenTTL: 10 * time.Minute, Default: true,
		Config: &nomad.ACLAuthMethodConfig{
			OIDCDiscoveryURL: "https://id.example.com", OIDCClientID: "nomad", OIDCClientSecret: "s",
			BoundAudiences: []string{"nomad"}, AllowedRedirectURIs: []string{"http://localhost:4649/oidc/callback"},
			ListClaimMappings: map[string]string{"groups": "groups"},
		},
	}
	created, _, err := c.ACLAuthMethods().Create(method, nil)
	works("auth method", err)
	require(created.MaxTokenTTL == 10*time.Minute && created.Config.OIDCClientID == "nomad", "method: %+v", created)
	rule, _, err := c.ACLBindingRules().Create(&nomad.ACLBindingRule{
		AuthMethod: "sso", BindType: "management", Selector: `"ops" in list.groups`,
	}, nil)
	works("binding rule", err)
	read, _, err := c.ACLBindingRules().Get(rule.ID, nil)
	works("read rule", err)
	require(read.Selector == rule.Selector && read.BindType == "management", "rule: %+v", read)
	_, _, err = c.ACLBindingRules().Create(&nomad.ACLBindingRule{AuthMethod: "none", BindType: "management"}, nil)
	refused("a rule of no method", err, "400")
	_, err = c.ACLBindingRules().Delete(rule.ID, nil)
	works("delete rule", err)
	_, err = c.ACLAuthMethods().Delete("sso", nil)
	works("delete method", err)
	_, _, err = c.ACLAuthMethods().Get("sso", nil)
	refused("a method that is gone", err, "404")
}

func schedulerConfig(c *nomad.Client) {
	was, _, err := c.Operator().SchedulerGetConfiguration(nil)
	works("get", err)
	config := *was.SchedulerConfig
	config.SchedulerAlgorithm = "spread"
	config.PreemptionConfig.ServiceSchedulerEnabled = true
	config.MemoryOversubscriptionEnabled = true
	_, _, err = c.Operator().SchedulerSetConfiguration(&config, nil)
	works("set", err)
	now, _, err := c.Operator().SchedulerGetConfiguration(nil)
	works("get", err)
	require(now.SchedulerConfig.SchedulerAlgorithm == "spread" && now.SchedulerConfig.MemoryOversubscriptionEnabled &&
		now.SchedulerConfig.PreemptionConfig.ServiceSchedulerEnabled, "%+v", now.SchedulerConfig)
	_, _, err = c.Operator().SchedulerSetConfiguration(was.SchedulerConfig, nil)
	works("set back", err)
}

func hostVolume(c *nomad.Client) {
	created, _, err := c.HostVolumes().Create(&nomad.HostVolumeCreateRequest{Volume: &nomad.HostVolume{
		Name: "data", Namespace: "default", PluginID: "mkdir", NodePool: "default",
		RequestedCapabilities: []*nomad.HostVolumeCapability{
			{AttachmentMode: nomad.HostVolumeAttachmentModeFilesystem, AccessMode: nomad.HostVolumeAccessModeSingleNodeWriter},
		},
	}}, nil)
	works("create", err)
	id := created.Volume.ID
	// The provider waits until the node has made it.
	until("the volume", func() bool {
		read, _, err := c.HostVolumes().Get(id, nil)
		works("get", err)
		require(read.State != "unavailable", "volume is %s", read.State)
		return read.State == nomad.HostVolumeStateReady && read.HostPath != ""
	})
	_, _, err = c.HostVolumes().Delete(&nomad.HostVolumeDeleteRequest{ID: id}, nil)
	works("delete", err)
	_, _, err = c.HostVolumes().Get(id, nil)
	refused("a volume that is gone", err, "404")
	_, _, err = c.HostVolumes().Create(&nomad.HostVolumeCreateRequest{Volume: &nomad.HostVolume{
		Name: "other", Namespace: "default", PluginID: "no-such-plugin",
		RequestedCapabilities: []*nomad.HostVolumeCapability{
			{AttachmentMode: nomad.HostVolumeAttachmentModeFilesystem, AccessMode: nomad.HostVolumeAccessModeSingleNodeWriter},
		},
	}}, nil)
	refused("a volume of no plugin", err)
}

func csiVolume(c *nomad.Client) {
	plugins, _, err := c.CSIPlugins().List(nil)
	works("plugins", err)
	require(len(plugins) == 0, "%d plugins", len(plugins))
	// `wait_for_healthy` asks for it until it is there.
	_, _, err = c.CSIPlugins().Info("ebs", nil)
	refused("a plugin that is not there", err, "404")
	_, _, err = c.CSIVolumes().Info("disk", nil)
	refused("a volume that is not there", err, "404")
	_, _, err = c.CSIVolumes().CreateOpts(&nomad.CSIVolumeCreateRequest{Volumes: []*nomad.CSIVolume{{
		ID: "disk", Name: "disk", Namespace: "default", PluginID: "ebs",
		RequestedCapabilities: []*nomad.CSIVolumeCapability{{AccessMode: "single-node-writer", AttachmentMode: "file-system"}},
	}}}, nil)
	refused("a volume of no plugin", err)
	volumes, _, err := c.CSIVolumes().List(&nomad.QueryOptions{Params: map[string]string{"type": "csi"}})
	works("volumes", err)
	require(len(volumes) == 0, "%d volumes", len(volumes))
}

func enterprise(c *nomad.Client) {
	_, err := c.Quotas().Register(&nomad.QuotaSpec{Name: "q"}, nil)
	refused("a quota", err, "501")
	_, _, err = c.Quotas().List(nil)
	refused("quotas", err, "501")
	_, err = c.SentinelPolicies().Upsert(&nomad.SentinelPolicy{Name: "s"}, nil)
	refused("a Sentinel policy", err, "501")
}

func dataSources(c *nomad.Client) {
	regions, err := c.Regions().List()
	works("regions", err)
	require(len(regions) == 1 && regions[0] == "global", "regions: %v", regions)
	nodes, _, err := c.Nodes().List(nil)
	works("nodes", err)
	require(len(nodes) == 1 && nodes[0].Datacenter == "dc1" && nodes[0].Status == "ready", "nodes: %+v", nodes)
	_, _, err = c.Deployments().List(&nomad.QueryOptions{Namespace: "*"})
	works("deployments", err)
	allocations, _, err := c.Allocations().List(&nomad.QueryOptions{
		Namespace: "*", Filter: `JobID == "web"`, PerPage: 1, Params: map[string]string{"reverse": "true"},
	})
	works("allocations", err)
	require(len(allocations) <= 1, "%d allocations on a page of one", len(allocations))
	var keys struct{ Keys []map[string]any }
	_, err = c.Raw().Query("/.well-known/jwks.json", &keys, nil)
	works("jwks", err)
	require(len(keys.Keys) > 0, "no keys")
	policies, _, err := c.Scaling().ListPolicies(nil)
	works("scaling policies", err)
	require(len(policies) == 0, "%d scaling policies", len(policies))
}
