// A driver on hashicorp/go-plugin, the library that stock plugins are built with: its handshake, its log and its own
// services, which an agent has to get along with. The messages are compiled when it starts, from the directory in its
// argument.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// An answer is JSON of the message that the call returns.
type answer func(ctx context.Context, request map[string]any) (any, error)

type object = map[string]any

var (
	logger = hclog.New(&hclog.LoggerOptions{Name: "hello-go", Level: hclog.Debug, Output: os.Stderr, JSONFormat: true})
	lock   sync.Mutex
	tasks  = map[string]*task{}
)

type task struct {
	command *exec.Cmd
	ended   chan struct{}
}

func find(request object) (*task, error) {
	lock.Lock()
	defer lock.Unlock()
	if found, ok := tasks[request["taskId"].(string)]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("task not found for given id")
}

func attr(name, kind string, required bool) object {
	return object{"attr": object{"name": name, "type": kind, "required": required}}
}

func unpack(encoded any) (object, error) {
	var raw []byte
	if err := json.Unmarshal([]byte(fmt.Sprintf("%q", encoded)), &raw); err != nil {
		return nil, err
	}
	config, handle := object{}, &codec.MsgpackHandle{}
	handle.RawToString = true
	handle.MapType = nil
	return config, codec.NewDecoder(bytes.NewReader(raw), handle).Decode(&config)
}

var answers = map[string]answer{
	"PluginInfo": func(context.Context, object) (any, error) {
		return object{"type": "DRIVER", "pluginApiVersions": []string{"v0.1.0"}, "pluginVersion": "1.0.0", "name": "hello-go"}, nil
	},
	"ConfigSchema": func(context.Context, object) (any, error) {
		spec := object{"object": object{"attributes": object{"greeting": attr("greeting", "string", false)}}}
		return object{"spec": spec}, nil
	},
	"SetConfig": func(_ context.Context, request object) (any, error) {
		config, err := unpack(request["msgpackConfig"])
		logger.Info("configured", "greeting", config["greeting"])
		fmt.Println("what is written to standard output goes another way")
		return object{}, err
	},
	"TaskConfigSchema": func(context.Context, object) (any, error) {
		attributes := object{"command": attr("command", "string", true), "args": attr("args", "list(string)", false)}
		return object{"spec": object{"object": object{"attributes": attributes}}}, nil
	},
	"Capabilities": func(context.Context, object) (any, error) {
		return object{"capabilities": object{"sendSignals": true, "mountConfigs": 1}}, nil
	},
	"Fingerprint": func(context.Context, object) (any, error) {
		return object{"health": "HEALTHY", "healthDescription": "Healthy"}, nil
	},
	"StartTask": start,
	"RecoverTask": func(_ context.Context, request object) (any, error) {
		_, err := find(request)
		return object{}, err
	},
	"WaitTask": func(ctx context.Context, request object) (any, error) {
		found, err := find(request)
		if err != nil {
			return nil, err
		}
		select {
		case <-found.ended:
			return object{"result": object{"exitCode": found.command.ProcessState.ExitCode()}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	},
	"StopTask": func(_ context.Context, request object) (any, error) {
		found, err := find(request)
		if err != nil {
			return nil, err
		}
		found.command.Process.Kill()
		<-found.ended
		return object{}, nil
	},
	"DestroyTask": func(_ context.Context, request object) (any, error) {
		if _, err := find(request); err != nil {
			return nil, err
		}
		lock.Lock()
		defer lock.Unlock()
		delete(tasks, request["taskId"].(string))
		return object{}, nil
	},
}

func start(_ context.Context, request object) (any, error) {
	wanted := request["task"].(object)
	config, err := unpack(wanted["msgpackDriverConfig"])
	if err != nil {
		return nil, err
	}
	stdout, err := os.OpenFile(wanted["stdoutPath"].(string), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	encoded, _ := json.Marshal(config)
	command := exec.Command("/bin/sh", "-c", config["command"].(string))
	command.Env, command.Stdout = []string{"PATH=" + os.Getenv("PATH"), "CONFIG=" + string(encoded)}, io.Writer(stdout)
	if err := command.Start(); err != nil {
		return object{"result": "FATAL", "driverErrorMsg": err.Error()}, nil
	}
	started := &task{command, make(chan struct{})}
	go func() {
		command.Wait()
		close(started.ended)
	}()
	lock.Lock()
	defer lock.Unlock()
	tasks[wanted["id"].(string)] = started
	return object{"result": "SUCCESS", "handle": object{"version": 1, "config": wanted, "state": "STATE_RUNNING"}}, nil
}

func call(ctx context.Context, method protoreflect.MethodDescriptor, decode func(any) error) (any, error) {
	known, ok := answers[string(method.Name())]
	if !ok {
		return nil, status.Error(codes.Unimplemented, string(method.Name()))
	}
	request := dynamicpb.NewMessage(method.Input())
	if err := decode(request); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(request)
	if err != nil {
		return nil, err
	}
	fields := object{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	answered, err := known(ctx, fields)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(answered); err != nil {
		return nil, err
	}
	response := dynamicpb.NewMessage(method.Output())
	return response, protojson.Unmarshal(text, response)
}

func describe(service protoreflect.ServiceDescriptor) *grpc.ServiceDesc {
	described := &grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil)}
	for i := 0; i < service.Methods().Len(); i++ {
		method := service.Methods().Get(i)
		if method.IsStreamingServer() {
			handler := func(_ any, stream grpc.ServerStream) error {
				response, err := call(stream.Context(), method, stream.RecvMsg)
				if err == nil {
					err = stream.SendMsg(response)
				}
				if err == nil {
					<-stream.Context().Done()
				}
				return err
			}
			described.Streams = append(described.Streams, grpc.StreamDesc{
				StreamName: string(method.Name()), Handler: handler, ServerStreams: true, ClientStreams: method.IsStreamingClient(),
			})
			continue
		}
		handler := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return call(ctx, method, decode)
		}
		described.Methods = append(described.Methods, grpc.MethodDesc{MethodName: string(method.Name()), Handler: handler})
	}
	return described
}

type services struct {
	plugin.NetRPCUnsupportedPlugin
	described []*grpc.ServiceDesc
}

func (s *services) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	for _, described := range s.described {
		server.RegisterService(described, s)
	}
	return nil
}

func (s *services) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this is the other side")
}

func main() {
	paths := &protocompile.SourceResolver{ImportPaths: os.Args[1:]}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(paths)}
	files, err := compiler.Compile(context.Background(), "base.proto", "driver.proto")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	all := &services{}
	for _, file := range files {
		for i := 0; i < file.Services().Len(); i++ {
			all.described = append(all.described, describe(file.Services().Get(i)))
		}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  2,
			MagicCookieKey:   "NOMAD_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
		},
		Plugins:    map[string]plugin.Plugin{"driver": all},
		GRPCServer: plugin.DefaultGRPCServer,
		Logger:     logger,
	})
}
