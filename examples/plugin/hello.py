#!/usr/bin/env python3
"""The same driver in Python, as far as a test needs it: a peer that shares no code with the agent.

Needs grpcio and grpcio-tools, and compiles the messages beside it when it starts.
"""
import json, os, pathlib, signal, subprocess, sys, tempfile, threading
from concurrent import futures

COOKIE = ("NOMAD_PLUGIN_MAGIC_COOKIE", "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255")
PROTO = pathlib.Path(__file__).resolve().parent / "proto"


def messages():
    """The modules of the messages, compiled into a folder of their own."""
    import grpc_tools
    from grpc_tools import protoc

    out = tempfile.mkdtemp()
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    files = ["base.proto", "driver.proto", "hclspec.proto", "structs.proto"]
    args = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={out}", f"--grpc_python_out={out}", *files]
    if protoc.main(args):
        sys.exit("the messages cannot be compiled")
    sys.path.insert(0, out)


def log(level, message, **more):
    print(json.dumps({"@level": level, "@message": message, "@module": "hello", **more}), file=sys.stderr, flush=True)


def unpack(data):
    """The few types of MessagePack that an agent sends."""
    import struct

    def read(at):
        kind = data[at]
        at += 1
        if kind <= 0x7F:
            return kind, at
        if 0x80 <= kind <= 0x8F or kind == 0xDE:
            count = kind & 0x0F
            if kind == 0xDE:
                count, at = struct.unpack_from(">H", data, at)[0], at + 2
            found = {}
            for _ in range(count):
                key, at = read(at)
                found[key], at = read(at)
            return found, at
        if 0x90 <= kind <= 0x9F:
            found = []
            for _ in range(kind & 0x0F):
                one, at = read(at)
                found.append(one)
            return found, at
        if 0xA0 <= kind <= 0xBF or kind in (0xD9, 0xDA):
            length = kind & 0x1F
            if kind == 0xD9:
                length, at = data[at], at + 1
            if kind == 0xDA:
                length, at = struct.unpack_from(">H", data, at)[0], at + 2
            return data[at : at + length].decode(), at + length
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at

    return read(0)[0]


def main():
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit("this is a plugin: put it into plugin_dir of an agent, which starts it")
    messages()
    import grpc
    import base_pb2, base_pb2_grpc, driver_pb2, driver_pb2_grpc, hclspec_pb2

    def attr(name, kind, required=False):
        return hclspec_pb2.Spec(attr=hclspec_pb2.Attr(name=name, type=kind, required=required))

    def spec(**attributes):
        return hclspec_pb2.Spec(object=hclspec_pb2.Object(attributes=attributes))

    class Base(base_pb2_grpc.BasePluginServicer):
        def PluginInfo(self, request, context):
            return base_pb2.PluginInfoResponse(
                type=base_pb2.DRIVER, plugin_api_versions=["v0.1.0"], plugin_version="1.0.0", name="hello-python"
            )

        def ConfigSchema(self, request, context):
            return base_pb2.ConfigSchemaResponse(spec=spec(greeting=attr("greeting", "string")))

        def SetConfig(self, request, context):
            self.greeting = unpack(request.msgpack_config)["greeting"]
            cores = len(request.nomad_config.driver.topology.cores)
            log("info", "configured", greeting=self.greeting, cores=cores)
            return base_pb2.Empty()

    base, tasks = Base(), {}

    class Driver(driver_pb2_grpc.DriverServicer):
        def TaskConfigSchema(self, request, context):
            nested = spec(level=attr("level", "number", True))
            block = hclspec_pb2.Spec(block_value=hclspec_pb2.Block(name="volume", nested=nested))
            literal = hclspec_pb2.Spec(literal=hclspec_pb2.Literal(value="{ level = 7 }"))
            volume = hclspec_pb2.Spec(default=hclspec_pb2.Default(primary=block, default=literal))
            return driver_pb2.TaskConfigSchemaResponse(
                spec=spec(command=attr("command", "string", True), labels=attr("labels", "list(map(string))"), volume=volume)
            )

        def Capabilities(self, request, context):
            can = driver_pb2.DriverCapabilities(send_signals=True, mount_configs=1)
            return driver_pb2.CapabilitiesResponse(capabilities=can)

        def Fingerprint(self, request, context):
            answer = driver_pb2.FingerprintResponse(health=driver_pb2.HEALTHY, health_description="Healthy")
            answer.attributes["driver.hello-python.greeting"].string_val = base.greeting
            yield answer
            ended = threading.Event()
            context.add_callback(ended.set)
            ended.wait()

        def StartTask(self, request, context):
            task = request.task
            config = unpack(task.msgpack_driver_config)
            env = {**task.env, "CONFIG": json.dumps(config, sort_keys=True)}
            with open(task.stdout_path, "wb") as stdout, open(task.stderr_path, "wb") as stderr:
                child = subprocess.Popen(
                    ["/bin/sh", "-c", config["command"]], env=env, stdout=stdout, stderr=stderr,
                    cwd=f"{task.alloc_dir}/{task.name}", start_new_session=True,
                )
            tasks[task.id] = child
            handle = driver_pb2.TaskHandle(version=1, config=task, state=driver_pb2.STATE_RUNNING, driver_state=b"%d" % child.pid)
            return driver_pb2.StartTaskResponse(result=driver_pb2.SUCCESS, handle=handle)

        def child(self, id, context):
            if id not in tasks:
                context.abort(grpc.StatusCode.UNKNOWN, "task not found for given id")
            return tasks[id]

        def RecoverTask(self, request, context):
            self.child(request.task_id, context)
            return driver_pb2.Empty()

        def WaitTask(self, request, context):
            code = self.child(request.task_id, context).wait()
            result = driver_pb2.ExitResult(exit_code=max(code, 0), signal=max(-code, 0))
            return driver_pb2.WaitTaskResponse(result=result)

        def StopTask(self, request, context):
            child = self.child(request.task_id, context)
            child.send_signal(getattr(signal, request.signal or "SIGTERM"))
            try:
                child.wait(request.timeout.seconds + request.timeout.nanos / 1e9)
            except subprocess.TimeoutExpired:
                child.kill()
            return driver_pb2.Empty()

        def DestroyTask(self, request, context):
            child = self.child(request.task_id, context)
            if child.poll() is None and not request.force:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the task still runs")
            child.kill()
            del tasks[request.task_id]
            return driver_pb2.Empty()

        def SignalTask(self, request, context):
            self.child(request.task_id, context).send_signal(getattr(signal, request.signal))
            return driver_pb2.Empty()

    server = grpc.server(futures.ThreadPoolExecutor(32))
    base_pb2_grpc.add_BasePluginServicer_to_server(base, server)
    driver_pb2_grpc.add_DriverServicer_to_server(Driver(), server)
    ended = threading.Event()

    def shutdown(request, context):
        ended.set()
        return b""

    calls = {"Shutdown": grpc.unary_unary_rpc_method_handler(shutdown)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("plugin.GRPCController", calls),))
    socket = f"{tempfile.mkdtemp()}/plugin"
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    print(f"1|2|unix|{socket}|grpc|", flush=True)
    ended.wait()
    server.stop(1).wait()


main()
