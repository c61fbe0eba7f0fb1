"""Every method of python-nomad against a running agent.

Usage: NOMAD_ADDR=http://127.0.0.1:4646 python python_nomad.py

Each function below is a test; one that raises has failed. The agent runs one node with the raw_exec driver.
"""

import base64
import os
import time
import traceback
import urllib.parse
import uuid

import nomad
import nomad.api.exceptions as errors

address = urllib.parse.urlparse(os.environ["NOMAD_ADDR"])
n = nomad.Nomad(host=address.hostname, port=address.port, timeout=20)

SCRIPT = "echo hello; echo oops >&2; echo content > local/file; trap 'exit 0' TERM; while :; do sleep 0.1; done"


def job(id_, **changes):
    task = {
        "Name": "main",
        "Driver": "raw_exec",
        "Config": {"command": "/bin/sh", "args": ["-c", changes.pop("script", SCRIPT)]},
        "Resources": {"CPU": 20, "MemoryMB": 16},
        "KillTimeout": 1_000_000_000,
    }
    group = {"Name": "group", "Count": 1, "Tasks": [task], "EphemeralDisk": {"SizeMB": 101}}
    group.update(changes.pop("group", {}))
    task["LogConfig"] = {"MaxFiles": 2, "MaxFileSizeMB": 2}
    return {"Job": {"ID": id_, "Name": id_, "Type": "service", "Datacenters": ["*"], "TaskGroups": [group], **changes}}


def until(what, answer, limit=30):
    """Asks until the answer is true, and gives it."""
    end = time.monotonic() + limit
    while True:
        got = answer()
        if got:
            return got
        assert time.monotonic() < end, f"{what}: not within {limit} s"
        time.sleep(0.05)


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")


def running(id_):
    def find():
        allocs = n.job.get_allocations(id_)
        return next((a for a in allocs if a["ClientStatus"] == "running" and a["DesiredStatus"] == "run"), None)

    return until(f"an allocation of {id_} runs", find)


def with_job(id_, test, **changes):
    n.job.register_job(id_, job(id_, **changes))
    try:
        test(running(id_))
    finally:
        n.job.deregister_job(id_, purge=True)


def jobs():
    made = n.jobs.register_job(job("py-jobs"))
    assert made["EvalID"] and made["JobModifyIndex"] > 0, made
    try:
        assert "py-jobs" in [one["ID"] for one in n.jobs.get_jobs()]
        assert [one["ID"] for one in n.jobs.get_jobs(prefix="py-jobs")] == ["py-jobs"]
        assert n.jobs.get_jobs(filter_='ID == "py-jobs"')[0]["Status"] in ("pending", "running")
        assert "py-jobs" in n.jobs and n.jobs["py-jobs"]["Name"] == "py-jobs" and len(n.jobs) >= 1
        assert any(one["ID"] == "py-jobs" for one in n.jobs)
        hcl = 'job "parsed" {\n group "g" {\n task "t" {\n driver = "raw_exec"\n config { command = "true" }\n}\n}\n}'
        parsed = n.jobs.parse(hcl, canonicalize=True)
        assert parsed["ID"] == "parsed" and parsed["TaskGroups"][0]["RestartPolicy"]["Attempts"] == 2
        raises(errors.BadRequestNomadException, lambda: n.jobs.parse("job {"))
    finally:
        n.job.deregister_job("py-jobs", purge=True)


def one_job():
    def test(_):
        assert n.job.get_job("py-job")["ID"] == "py-job"
        assert n.job["py-job"]["Version"] == 0 and "py-job" in n.job
        assert n.job.get_evaluations("py-job")[0]["JobID"] == "py-job"
        assert n.job.get_summary("py-job")["Summary"]["group"]["Running"] == 1
        plan = n.job.plan_job("py-job", job("py-job", Priority=60), diff=True)
        assert plan["Diff"]["Type"] == "Edited" and plan["JobModifyIndex"] > 0
        assert n.job.evaluate_job("py-job")["EvalID"]
        deployment = until("a deployment", lambda: n.job.get_deployment("py-job"))
        assert [one["ID"] for one in n.job.get_deployments("py-job")] == [deployment["ID"]]
        n.job.register_job("py-job", job("py-job", Meta={"a": "b"}))
        assert [one["Version"] for one in n.job.get_versions("py-job")["Versions"]] == [1, 0]
        n.job.stable_job("py-job", 0, True)
        assert n.job.get_versions("py-job")["Versions"][1]["Stable"]
        assert n.job.revert_job("py-job", 0, enforce_prior_version=1)["EvalID"]
        assert n.job.get_job("py-job")["Version"] == 2

    with_job("py-job", test)
    raises(errors.URLNotFoundNomadException, lambda: n.job.get_job("py-job"))
    assert n.validate.validate_job(job("py-job")).status_code == 200


def periodic_and_dispatched():
    script = {"script": "true", "Type": "batch"}
    n.job.register_job("py-tick", job("py-tick", Periodic={"Enabled": True, "Spec": "@yearly"}, **script))
    n.job.register_job("py-mail", job("py-mail", ParameterizedJob={"MetaRequired": ["who"]}, **script))
    try:
        assert n.job.periodic_job("py-tick")["EvalID"]
        payload = base64.b64encode(b"hello").decode()
        child = n.job.dispatch_job("py-mail", payload=payload, meta={"who": "ann"})["DispatchedJobID"]
        assert n.job.get_job(child)["ParentID"] == "py-mail"
        done = lambda: n.job.get_job(child)["Status"] == "dead"
        until("the dispatched job ends", done)
        assert n.job.get_summary("py-mail")["Children"]["Dead"] == 1
        raises(errors.BaseNomadException, lambda: n.job.dispatch_job("py-mail", meta={}))
    finally:
        for id_ in ("py-tick", "py-mail"):
            n.job.deregister_job(id_, purge=True)


def nodes():
    listed = n.nodes.get_nodes()
    id_ = listed[0]["ID"]
    assert n.nodes.get_nodes(prefix=id_[:8])[0]["ID"] == id_ and id_ in n.nodes and n.nodes[id_]["ID"] == id_
    assert "NodeResources" in n.nodes.get_nodes(resources=True)[0]
    assert n.nodes.get_nodes(filter_='Status == "ready"')[0]["ID"] == id_
    assert n.node.get_node(id_)["Status"] == "ready" and n.node[id_]["ID"] == id_ and id_ in n.node
    assert isinstance(n.node.get_allocations(id_), list)
    assert isinstance(n.node.evaluate_node(id_)["EvalIDs"], (list, type(None)))
    n.node.eligible_node(id_, ineligible=True)
    assert n.node.get_node(id_)["SchedulingEligibility"] == "ineligible"
    n.node.eligible_node(id_, eligible=True)
    n.node.drain_node_with_spec(id_, {"Deadline": 60_000_000_000})
    until("the empty node is drained", lambda: n.node.get_node(id_)["DrainStrategy"] is None)
    n.node.drain_node(id_, enable=True)
    n.node.drain_node_with_spec(id_, {}, mark_eligible=True)
    n.node.drain_node(id_, enable=False)
    n.node.eligible_node(id_, eligible=True)
    raises(errors.BaseNomadException, lambda: n.node.get_node(str(uuid.uuid4())))
    raises(errors.BaseNomadException, lambda: n.node.purge_node(str(uuid.uuid4())))


def allocations():
    def test(alloc):
        id_ = alloc["ID"]
        assert id_ in [one["ID"] for one in n.allocations.get_allocations()]
        assert n.allocations.get_allocations(prefix=id_[:8])[0]["ID"] == id_
        assert n.allocations.get_allocations(filter_='JobID == "py-allocs"')[0]["ID"] == id_
        assert "AllocatedResources" in n.allocations.get_allocations(resources=True)[0]
        assert len(n.allocations) >= 1 and any(one["ID"] == id_ for one in n.allocations)
        read = n.allocation.get_allocation(id_)
        assert read["Job"]["ID"] == "py-allocs" and read["TaskStates"]["main"]["State"] == "running"
        assert n.allocation[id_]["ID"] == id_ and id_ in n.allocation
        assert n.allocation.stop_allocation(id_)["EvalID"]
        until("another one", lambda: running("py-allocs")["ID"] != id_)
        raises(errors.URLNotFoundNomadException, lambda: n.allocation.get_allocation(str(uuid.uuid4())))

    with_job("py-allocs", test)


def evaluations():
    def test(_):
        all_ = n.evaluations.get_evaluations()
        eval_ = next(one for one in all_ if one["JobID"] == "py-evals")
        id_ = eval_["ID"]
        assert n.evaluations.get_evaluations(prefix=id_[:8])[0]["ID"] == id_
        assert id_ in n.evaluations and n.evaluations[id_]["ID"] == id_ and len(n.evaluations) >= 1
        assert n.evaluation.get_evaluation(id_)["JobID"] == "py-evals" and id_ in n.evaluation
        assert n.evaluation[id_]["ID"] == id_
        assert n.evaluation.get_allocations(id_)[0]["JobID"] == "py-evals"
        raises(errors.URLNotFoundNomadException, lambda: n.evaluation.get_evaluation(str(uuid.uuid4())))

    with_job("py-evals", test)


def deployments():
    canary = {"group": {"Update": {"MaxParallel": 1, "Canary": 1, "MinHealthyTime": 1, "HealthyDeadline": 60_000_000_000, "ProgressDeadline": 120_000_000_000}}}

    def newest():
        return n.job.get_deployment("py-deploys")

    def test(_):
        until("the first one succeeds", lambda: newest()["Status"] == "successful")
        n.job.register_job("py-deploys", job("py-deploys", Meta={"v": "2"}, **canary))
        id_ = until("a canary waits", lambda: newest()["StatusDescription"].startswith("Deployment is running but") and newest()["ID"])
        assert n.deployments.get_deployments(prefix=id_[:8])[0]["ID"] == id_
        assert id_ in n.deployments and n.deployments[id_]["ID"] == id_ and len(n.deployments) >= 2
        assert n.deployment.get_deployment(id_)["ID"] == id_ and id_ in n.deployment and n.deployment[id_]
        until("it is placed", lambda: n.deployment.get_deployment_allocations(id_))
        n.deployment.pause_deployment(id_, True)
        assert n.deployment.get_deployment(id_)["Status"] == "paused"
        n.deployment.pause_deployment(id_, False)
        healthy = lambda: n.deployment.get_deployment(id_)["TaskGroups"]["group"]["HealthyAllocs"] >= 1
        until("the canary is healthy", healthy)
        n.deployment.promote_deployment_groups(id_, groups=["group"])
        until("it succeeds", lambda: newest()["Status"] == "successful")
        n.job.register_job("py-deploys", job("py-deploys", Meta={"v": "3"}, **canary))
        other = until("another", lambda: newest()["ID"] != id_ and newest()["ID"])
        alloc = until("its canary", lambda: n.deployment.get_deployment_allocations(other))[0]["ID"]
        n.deployment.deployment_allocation_health(other, healthy_allocations=[alloc])
        n.deployment.promote_deployment_all(other)
        until("it is over", lambda: newest()["Status"] == "successful")
        raises(errors.BaseNomadException, lambda: n.deployment.fail_deployment(other))
        n.job.register_job("py-deploys", job("py-deploys", Meta={"v": "4"}, **canary))
        last = until("a third", lambda: newest()["ID"] != other and newest()["ID"])
        n.deployment.fail_deployment(last)
        assert n.deployment.get_deployment(last)["Status"] == "failed"

    with_job("py-deploys", test, **canary)


def agent():
    own = n.agent.get_agent()
    assert own["member"]["Status"] == "alive" and own["config"]["Region"] == "global"
    assert n.agent.get_members()["Members"][0]["Status"] == "alive"
    assert n.agent.get_servers()
    n.agent.update_servers(n.agent.get_servers())
    assert n.agent.join_agent("127.0.0.1:1")["error"]
    n.agent.force_leave("nobody.global")


def status():
    assert n.status.leader.get_leader().count(":") >= 1
    assert len(n.status.peers.get_peers()) == 1
    assert n.regions.get_regions() == ["global"]
    assert len(n.status.peers) == 1 and n.status.leader.get_leader() in n.status.peers


def system():
    assert n.system.initiate_garbage_collection()
    assert n.system.reconcile_summaries()


def event():
    stream, stop, events = n.event.stream.get_stream(topic={"Job": "*"}, timeout=10)
    stream.daemon = True
    stream.start()
    n.job.register_job("py-events", job("py-events"))
    try:
        # The client gives the topic without its key: events of all jobs come.
        keys = set()
        while "py-events" not in keys:
            got = events.get(timeout=20)
            assert {one["Topic"] for one in got["Events"]} == {"Job"}, got
            keys |= {one["Key"] for one in got["Events"]}
    finally:
        stop.set()
        n.job.deregister_job("py-events", purge=True)


def search():
    def test(_):
        assert n.search.search("py-sea", "jobs")["Matches"]["jobs"] == ["py-search"]
        assert n.search.search("py-sea", "all")["Truncations"]["jobs"] is False
        for context in ("evals", "allocs", "nodes", "deployment", "plugins", "volumes"):
            n.search.search("ab", context)
        found = n.search.fuzzy_search("sear", "jobs")["Matches"]["jobs"]
        assert {"ID": "py-search", "Scope": ["default", "py-search"]} in found
        for context in ("allocs", "nodes", "plugins", "all"):
            n.search.fuzzy_search("sear", context)

    with_job("py-search", test)


def metrics():
    assert n.metrics.get_metrics()["Gauges"]


def client():
    def test(alloc):
        id_ = alloc["ID"]
        until("the file is written", lambda: "file" in [one["Name"] for one in n.client.ls.list_files(id_, "/main/local")])
        assert "alloc" in [one["Name"] for one in n.client.ls.list_files(id_)]
        assert n.client.cat.read_file(id_, "/main/local/file") == "content\n"
        assert n.client.read_at.read_file_offset(id_, 3, 4, "/main/local/file") == "tent"
        assert n.client.stat.stat_file(id_, "/main/local/file")["Size"] == 8
        assert n.client.stats.read_stats()["Memory"]["Total"] > 0
        assert n.client.stats.read_stats(node_id=alloc["NodeID"])["CPU"]
        assert "main" in n.client.allocation.read_allocation_stats(id_)["Tasks"]
        logs = lambda kind: n.client.stream_logs.stream(id_, "main", kind, plain=True)
        until("it has said something", lambda: logs("stdout") == "hello\n")
        assert logs("stderr") == "oops\n"
        assert base64.b64encode(b"hello\n").decode() in n.client.stream_logs.stream(id_, "main", "stdout")
        n.client.allocation.restart_allocation(id_)
        restarted = lambda: n.allocation.get_allocation(id_)["TaskStates"]["main"]["Restarts"] == 1
        until("it is restarted", restarted)
        until("and runs", lambda: n.allocation.get_allocation(id_)["TaskStates"]["main"]["State"] == "running")
        n.client.allocation.signal_allocation(id_, "SIGUSR2", task="main")
        raises(errors.BaseNomadException, lambda: n.client.allocation.signal_allocation(id_, "SIGNOTHING"))
        raises(errors.BaseNomadException, lambda: n.client.gc_allocation.garbage_collect(id_))
        raises(errors.BaseNomadException, lambda: n.client.cat.read_file(id_, "/../../etc/passwd"))

    with_job("py-client", test)
    n.client.gc_all_allocations.garbage_collect()


def scaling():
    group = {"Scaling": {"Min": 1, "Max": 3, "Enabled": True}}
    n.job.register_job("py-scale", job("py-scale", group=group))
    try:
        policy = n.scaling.get_scaling_policies(job="py-scale")[0]
        assert n.scaling.get_scaling_policy(policy["ID"])["Max"] == 3
    finally:
        n.job.deregister_job("py-scale", purge=True)


def namespaces():
    n.namespace.create_namespace({"Name": "py-space", "Description": "for trying"})
    try:
        assert [one["Name"] for one in n.namespaces.get_namespaces(prefix="py-")] == ["py-space"]
        assert "py-space" in n.namespaces and n.namespace.get_namespace("py-space")["Description"] == "for trying"
        n.namespace.update_namespace("py-space", {"Name": "py-space", "Description": "changed"})
        assert n.namespace.get_namespace("py-space")["Description"] == "changed"
    finally:
        n.namespace.delete_namespace("py-space")
    raises(errors.URLNotFoundNomadException, lambda: n.namespace.get_namespace("py-space"))


def operator():
    assert n.operator.get_configuration()["Servers"][0]["Leader"]


TESTS = [
    jobs, one_job, periodic_and_dispatched, nodes, allocations, evaluations, deployments, agent, status, system,
    event, search, metrics, client, scaling, namespaces, operator,
]

failed = 0
for test in TESTS:
    try:
        test()
        print(f"ok      {test.__name__}", flush=True)
    except Exception:  # Whatever it is, it is the answer.
        failed += 1
        print(f"FAILED  {test.__name__}\n{traceback.format_exc()}", flush=True)
print(f"python-nomad: {len(TESTS) - failed} of {len(TESTS)}")
raise SystemExit(1 if failed else 0)
