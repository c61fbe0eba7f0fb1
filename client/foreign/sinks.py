"""What sinks of the event stream send, as others read it: a consumer on librdkafka from its own broker, rsyslog over TCP and UDP,
and the published messages of OpenTelemetry.

Usage: NOMAD_ADDR=http://127.0.0.1:4646 python sinks.py FOLDER DEBIAN

DEBIAN is where packages of kcat and rsyslog were unpacked. Everything they read names the same events, in the same order.
"""

import base64
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

work, debian = (pathlib.Path(path).resolve() for path in sys.argv[1:])
libraries = f"{debian}/usr/lib/{os.uname().machine}-linux-gnu"
environment = {**os.environ, "LD_LIBRARY_PATH": f"{libraries}:{libraries.replace('/usr/', '/')}"}
JOBS = ["seen-a", "seen-b", "seen-c"]
started = []


def until(what, answer, limit=30):
    """Asks until the answer is true, and gives it."""
    end = time.monotonic() + limit
    while not (found := answer()):
        if time.monotonic() > end:
            said = [path.read_text(errors="replace")[-2000:] for path in work.glob("sinks-*")]
            sys.exit("\n".join([f"FAILED  sinks: never happened: {what}", *said]))
        time.sleep(0.05)
    return found


def call(method, path, body=None):
    request = urllib.request.Request(os.environ["NOMAD_ADDR"] + path, method=method)
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, data) as answer:
        return json.loads(answer.read() or "null")


def run(*command):
    """Says where its output and its errors go."""
    logs = [work / f"sinks-{pathlib.Path(command[0]).name}.{kind}" for kind in ("out", "err")]
    with open(logs[0], "w") as out, open(logs[1], "w") as err:
        started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=err))
    return logs


def kafka():
    """A broker within a consumer: what it prints came over the network."""
    kcat = [f"{debian}/usr/bin/kcat", "-C", "-u", "-b", "127.0.0.1:1", "-t", "sojourn.events", "-o", "beginning"]
    settings = ["test.mock.num.brokers=2", "check.crcs=true"]
    out, err = run(*kcat, "-f", "%k|%h|%T|%s\\n", "-d", "mock", *(part for setting in settings for part in ("-X", setting)))
    pattern = re.compile(r"bootstrap\.servers=([0-9.:,]+)")
    address = until("Kafka listens", lambda: pattern.search(err.read_text()))[1]

    def read():
        # What stands behind the last end of a line is still being written.
        lines = [line.split("|", 3) for line in out.read_text().split("\n")[:-1]]
        for key, headers, time_ms, value in lines:
            event = json.loads(value)
            named = dict(header.split("=", 1) for header in headers.split(","))
            assert named == {"content-type": "application/cloudevents+json; charset=UTF-8", "ce_id": event["id"]}, headers
            assert key == event["subject"] == "Job/default/" + event["data"]["Key"], key
            assert abs(int(time_ms) / 1000 - time.time()) < 600, time_ms
        return [json.loads(value) for _, _, _, value in lines]

    return {"Kind": "kafka", "Address": address, "Subject": "sojourn.events"}, read


def rsyslog():
    """Both of its inputs write whatever they understood of a message as JSON."""
    tcp_port = work / "tcp.port"
    # rsyslog chooses one of TCP only.
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        udp_port = free.getsockname()[1]
    (work / "rsyslog.conf").write_text(
        f"""
global(workDirectory="{work}" maxMessageSize="64k")
module(load="imtcp")
module(load="imudp")
template(name="understood" type="list") {{ property(name="jsonmesg") constant(value="\\n") }}
ruleset(name="tcp") {{ action(type="omfile" file="{work}/sinks-tcp.json" template="understood") }}
ruleset(name="udp") {{ action(type="omfile" file="{work}/sinks-udp.json" template="understood") }}
input(type="imtcp" address="127.0.0.1" port="0" listenPortFileName="{tcp_port}" ruleset="tcp")
input(type="imudp" address="127.0.0.1" port="{udp_port}" ruleset="udp")
"""
    )
    modules = f"{libraries}/rsyslog"
    run(f"{debian}/usr/sbin/rsyslogd", "-n", "-f", f"{work}/rsyslog.conf", "-i", f"{work}/rsyslog.pid", "-M", modules)

    def of(transport, port):
        wanted = {"Kind": "syslog", "Address": f"127.0.0.1:{port}", "Transport": transport, "Facility": "local3", "AppName": "prod"}
        path = work / f"sinks-{transport}.json"

        def read():
            events = []
            for line in path.read_text().splitlines() if path.exists() else []:
                message = json.loads(line)
                event = json.loads(message["msg"])
                data = f'[sojourn@32473 id="{event["id"]}" topic="Job" type="JobRegistered"]'
                said = {
                    "syslogfacility": "19",
                    "syslogseverity": "6",
                    "programname": "prod",
                    "msgid": "JobRegistered",
                    "structured-data": data,
                }
                assert {name: message[name] for name in said} == said, line
                events.append(event)
            return events

        return wanted, read

    port = until("rsyslog listens", lambda: tcp_port.exists() and tcp_port.read_text().strip())
    return of("tcp", port), of("udp", udp_port)


def of_otlp(text):
    """Ids are hexadecimal in the JSON of OTLP, where that of protobuf has base64."""

    def read(found):
        ids = {key: base64.b64encode(bytes.fromhex(found[key])).decode() for key in ("traceId", "spanId", "parentSpanId") if key in found}
        return {**found, **ids}

    return json.dumps(json.loads(text, object_hook=read))


def collector(path, message):
    """Takes nothing but what the published message allows. Gives its URL, and what it was sent."""
    requests, wrong = [], []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                assert self.path == path and self.headers["content-type"] == "application/json"
                requests.append(json_format.Parse(of_otlp(body), message()))
            except Exception as error:
                wrong.append(f"{error}: {body[:500]}")
            answer = b"{}"
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def received():
        assert not wrong, wrong
        return requests

    return f"http://127.0.0.1:{server.server_port}{path}", received


def otlp():
    url, received = collector("/v1/logs", ExportLogsServiceRequest)

    def read():
        events = []
        for request in received():
            [resource] = request.resource_logs
            [scope] = resource.scope_logs
            for record in scope.log_records:
                event = json.loads(record.body.string_value)
                attributes = {one.key: one.value.string_value for one in record.attributes}
                assert attributes["cloudevents.event_id"] == event["id"], attributes
                assert (attributes["sojourn.topic"], attributes["sojourn.type"]) == ("Job", "JobRegistered"), attributes
                assert record.event_name == event["type"] and record.severity_number == 9, record
                assert any(one.key == "service.name" and one.value.string_value for one in resource.resource.attributes)
                assert abs(record.time_unix_nano / 1e9 - time.time()) < 600, record.time_unix_nano
                events.append(event)
        return events

    return {"Kind": "otlp", "URL": url}, read


def traces():
    """The same with spans: those that the events end which others are sent."""
    url, received = collector("/v1/traces", ExportTraceServiceRequest)

    def read():
        spans = []
        for request in received():
            [resource] = request.resource_spans
            [scope] = resource.scope_spans
            [span] = scope.spans
            attributes = {one.key: one.value.string_value for one in span.attributes}
            assert (len(span.trace_id), len(span.span_id), span.parent_span_id) == (16, 8, b""), span
            assert span.trace_id.hex() == attributes["sojourn.request.id"].replace("-", ""), span
            assert (span.name, span.kind) == ("job.register", Span.SPAN_KIND_SERVER), span
            assert span.start_time_unix_nano <= span.end_time_unix_nano, span
            assert abs(span.end_time_unix_nano / 1e9 - time.time()) < 600, span
            spans.append((attributes["cloudevents.event_id"], attributes["sojourn.job.id"]))
        return spans

    return {"Kind": "otlp", "Signal": "traces", "URL": url}, read


def register(name):
    group = {"Name": "g", "Tasks": [{"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/true"}}]}
    job = {"ID": name, "Name": name, "Type": "batch", "Datacenters": ["nowhere"], "TaskGroups": [group]}
    call("PUT", "/v1/jobs", {"Job": job})


try:
    tcp, udp = rsyslog()
    receivers = {"kcat": kafka(), "rsyslog over TCP": tcp, "rsyslog over UDP": udp, "messages of OpenTelemetry": otlp()}
    common = {"Topics": ["Job"], "Filter": "Type == JobRegistered", "MaxAttempts": 3, "Timeout": "10s"}
    of_spans, spans = traces()
    wanted_by = [wanted for wanted, _ in receivers.values()] + [of_spans]
    for number, wanted in enumerate(wanted_by):
        call("PUT", f"/v1/event/sink/foreign-{number}", {**wanted, **common})
    for name in JOBS:
        register(name)
    sent = None
    for what, (_, read) in receivers.items():
        events = until(f"{what}: {len(JOBS)} events arrive", lambda: len(found := read()) >= len(JOBS) and found)
        # Partitions of a topic have no order among each other.
        events.sort(key=lambda event: event["data"]["Index"])
        assert [event["data"]["Key"] for event in events] == JOBS, (what, events)
        assert sent in (None, events), f"{what} got other events"
        sent = events
        print(f"ok      {what}: every event, as it was sent")
    found = until("spans arrive", lambda: len(found := spans()) >= len(JOBS) and found)
    assert found == [(event["id"], event["data"]["Key"]) for event in sent], (found, sent)
    print("ok      messages of OpenTelemetry: every registration is a span, with the id of its event")
    for number in range(len(wanted_by)):
        call("DELETE", f"/v1/event/sink/foreign-{number}")
    for name in JOBS:
        call("DELETE", f"/v1/job/{name}?purge=true")
finally:
    for process in started:
        process.kill()
        process.wait()
