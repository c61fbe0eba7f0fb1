// A real agent with a scripted cluster, and a browser that looks at it.

import { chromium } from "playwright-core";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const SOJOURN = process.env.SOJOURN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug/sojourn");

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Asks until it is so: what a cluster does takes its time, and says when it is done. */
export async function until(what, condition, ms = 30000) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      last = await condition();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not so after ${ms} ms: ${last}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Agent {
  static async start(extra = "") {
    const agent = new Agent();
    const [http, rpc, serf] = [await freePort(), await freePort(), await freePort()];
    const config = join(agent.home, "agent.hcl");
    writeFileSync(config, `ports {\n  http = ${http}\n  rpc = ${rpc}\n  serf = ${serf}\n}\n${extra}`);
    return agent.spawned(http, ["agent", "-dev", "-node", "one", "-config", config]);
  }

  /** What records this one, and shows it. */
  async recording() {
    const recorder = new Agent();
    const http = await freePort();
    return recorder.spawned(http, ["record", "-from", this.address, "-data-dir", join(recorder.home, "data"), "-http-port", String(http)]);
  }

  constructor() {
    this.home = mkdtempSync(join(tmpdir(), "sojourn-ui-"));
    this.output = "";
  }

  async spawned(http, args) {
    this.address = `http://127.0.0.1:${http}`;
    this.child = spawn(SOJOURN, args, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.on("data", (piece) => (this.output = (this.output + piece).slice(-20000)));
    }
    await until("it answers", () => {
      if (this.child.exitCode !== null) throw new Error(this.output);
      return fetch(`${this.address}/v1/status/leader`).then((response) => response.ok);
    });
    return this;
  }

  async stop() {
    if (this.child.exitCode === null) {
      const ended = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGINT");
      await ended;
    }
    rmSync(this.home, { recursive: true, force: true });
  }

  async ask(path, body, { token, method = body === undefined ? "GET" : "PUT" } = {}) {
    const headers = token ? { "X-Nomad-Token": token } : {};
    const response = await fetch(this.address + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  async run(hcl) {
    const job = await this.ask("/v1/jobs/parse", { JobHCL: hcl, Canonicalize: true });
    return this.ask("/v1/jobs", { Job: job, Submission: { Source: hcl, Format: "hcl2" } });
  }

  async allocs(job) {
    return this.ask(`/v1/job/${job}/allocations`);
  }
}

export const WEB = (line, count = 2) => `job "web" {
  group "front" {
    count = ${count}
    update {
      canary           = 1
      max_parallel     = 1
      min_healthy_time = "10ms"
    }
    network {
      port "http" {}
    }
    service {
      name     = "web"
      port     = "http"
      provider = "nomad"
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "i=0; while true; do i=$((i+1)); echo ${line} $i; sleep 0.2; done"]
      }
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
`;

export const BIG = `job "too-big" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
      resources {
        memory = 9000000
      }
    }
  }
}
`;

export const MAIL = `job "mail" {
  type = "batch"
  parameterized {
    payload       = "optional"
    meta_required = ["who"]
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello $NOMAD_META_who"]
      }
    }
  }
}
`;

/** What every view has something of. */
export async function populate(agent) {
  await until("a node is ready", async () => (await agent.ask("/v1/nodes"))[0]?.Status === "ready");
  await agent.run(WEB("line"));
  await agent.run(BIG);
  await agent.run(MAIL);
  // A cluster that has just begun has no key to seal a variable with yet.
  const secret = { Path: "nomad/jobs/web", Items: { user: "admin", password: "hush" } };
  await until("a variable", () => agent.ask("/v1/var/nomad/jobs/web", secret));
  await agent.ask("/v1/namespace/staging", { Name: "staging", Description: "before it counts" });
  const healthy = (list) => list.filter((alloc) => alloc.ClientStatus === "running").length === 2;
  await until("web runs", async () => healthy(await agent.allocs("web")));
  await until("the deployment has ended", async () => {
    const [deployment] = await agent.ask("/v1/job/web/deployments");
    return deployment?.Status === "successful";
  });
}

const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

/** With DIST=FOLDER the page is read from there, and not from the program: for changes that are still being made. */
export async function fromSources(context) {
  const dist = process.env.DIST;
  if (!dist) return;
  await context.route(/\/ui\//, async (route) => {
    const path = new URL(route.request().url()).pathname.slice("/ui/".length);
    const file = path.startsWith("assets/") ? path : "index.html";
    await route.fulfill({ path: join(dist, file), contentType: TYPES[file.split(".").at(-1)] });
  });
}

export function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--no-sandbox", "--disable-gpu"];
  // A page that came from no address may otherwise open no socket to this machine.
  if (process.env.DIST) args.push("--disable-features=LocalNetworkAccessChecks");
  return chromium.launch({ executablePath, args });
}
