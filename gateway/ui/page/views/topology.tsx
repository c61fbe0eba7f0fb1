// All clients at once, by how much of each is given away.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, useGet } from "../api";
import { mib, plural } from "../format";
import { Choice, Missing, Section, Title } from "../parts";
import { address, go } from "../place";
import type { Alloc, NodeStub } from "../types";
import { type Colors, Picture, type Pointed } from "./canvas";
import { state, used } from "./nodes";

/** Most of either that are read for the picture. */
const NODES = 10_000;
const ALLOCS = 20_000;

interface Box {
  node: NodeStub;
  allocs: number;
  cpu: number;
  memory: number;
  /** Given away, of the whole. */
  parts: { cpu: number; memory: number };
}

function boxes(nodes: NodeStub[], allocs: Alloc[]): Box[] {
  const on = new Map<string, Alloc[]>();
  for (const alloc of allocs) {
    const list = on.get(alloc.NodeID);
    if (list) list.push(alloc);
    else on.set(alloc.NodeID, [alloc]);
  }
  const of = (node: NodeStub): Box => {
    const there = on.get(node.ID) ?? [];
    const { cpu, memory } = used(there);
    const part = (taken: number, size: number | undefined): number => (size ? Math.min(1, taken / size) : 0);
    const size = node.NodeResources;
    return {
      node,
      allocs: there.length,
      cpu,
      memory,
      parts: { cpu: part(cpu, size?.Cpu.CpuShares), memory: part(memory, size?.Memory.MemoryMB) },
    };
  };
  return nodes.map(of).sort((a, b) => a.node.NodePool.localeCompare(b.node.NodePool) || a.node.Name.localeCompare(b.node.Name));
}

/** How large a box is, so that many still fit. */
function sizeFor(count: number): { width: number; height: number; gap: number } {
  if (count <= 60) return { width: 168, height: 64, gap: 8 };
  if (count <= 600) return { width: 64, height: 34, gap: 4 };
  return { width: 14, height: 14, gap: 2 };
}

type By = "memory" | "cpu";

export function Topology(): JSX.Element {
  const [by, setBy] = useState<By>("memory");
  const nodes = useGet<NodeStub[]>(path(["nodes"], { resources: "true", per_page: NODES }), ["Node"]);
  const live = `ClientStatus == "running" or ClientStatus == "pending" or ClientStatus == "unknown"`;
  const where = path(["allocations"], { namespace: "*", resources: "true", task_states: "false", per_page: ALLOCS, filter: live });
  const allocs = useGet<Alloc[]>(where, ["Allocation"]);
  if (!nodes.data || !allocs.data) return <Missing error={nodes.error ?? allocs.error} what="clients" />;
  const all = boxes(nodes.data, allocs.data);
  const size = sizeFor(all.length);
  const perRow = (width: number): number => Math.max(1, Math.floor((width + size.gap) / (size.width + size.gap)));
  const found = ({ x, y }: Pointed, width: number): Box | undefined => {
    const [column, row] = [Math.floor(x / (size.width + size.gap)), Math.floor(y / (size.height + size.gap))];
    return column < perRow(width) ? all[row * perRow(width) + column] : undefined;
  };
  const words = ({ node, allocs: count, cpu, memory, parts }: Box): string =>
    `${node.Name} in ${node.NodePool}: ${state(node)}, ${plural(count, "allocation")}, memory ${mib(memory)} (${percent(parts.memory)}), CPU ${cpu} MHz (${percent(parts.cpu)})`;
  return (
    <>
      <Title kind={`${plural(all.length, "client")}, ${plural(allocs.data.length, "live allocation")}`}>Topology</Title>
      <div class="tools">
        <Choice name="Colour by" value={by} set={(value) => setBy(value as By)} of={[["memory", "memory given away"], ["cpu", "CPU given away"]]} />
        <span class="key" aria-hidden="true">
          <span><i class="fill running" />below 70 %</span>
          <span><i class="fill starting" />below 90 %</span>
          <span><i class="fill failed" />more, or not ready</span>
        </span>
      </div>
      {(nodes.next || allocs.next) && <p class="note warn">There are more than are shown.</p>}
      <Section title="Clients">
        <Picture
          name={`Clients by ${by}: ${all.slice(0, 20).map(words).join("; ")}`}
          height={(width) => Math.max(40, Math.ceil(all.length / perRow(width)) * (size.height + size.gap))}
          paint={(pen, width, _, colors) => paintBoxes(pen, all, by, size, perRow(width), colors)}
          point={(place, width) => {
            const box = found(place, width);
            return box ? words(box) : "";
          }}
          click={(place, width) => {
            const box = found(place, width);
            if (box) go(address("clients", box.node.ID));
          }}
        />
      </Section>
    </>
  );
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function paintBoxes(
  pen: CanvasRenderingContext2D,
  all: Box[],
  by: By,
  size: { width: number; height: number; gap: number },
  perRow: number,
  colors: Colors,
): void {
  all.forEach((box, place) => {
    const x = (place % perRow) * (size.width + size.gap);
    const y = Math.floor(place / perRow) * (size.height + size.gap);
    const part = box.parts[by];
    const isReady = box.node.Status === "ready";
    pen.fillStyle = colors.raised;
    pen.fillRect(x, y, size.width, size.height);
    pen.fillStyle = !isReady || part >= 0.9 ? colors.bad : part >= 0.7 ? colors.warn : colors.good;
    const isTiny = size.height < 30;
    if (isTiny) {
      const tall = isReady ? Math.max(2, size.height * part) : size.height;
      pen.fillRect(x, y + size.height - tall, size.width, tall);
    } else {
      pen.fillRect(x, y + size.height - 5, isReady ? size.width * part : size.width, 5);
      pen.fillStyle = colors.text;
      pen.fillText(box.node.Name, x + 6, y + 13, size.width - 12);
    }
    if (size.height >= 60) {
      pen.fillStyle = colors.quiet;
      pen.fillText(`${state(box.node)} · ${box.allocs} allocs`, x + 6, y + 30, size.width - 12);
      pen.fillText(`mem ${percent(box.parts.memory)} · cpu ${percent(box.parts.cpu)}`, x + 6, y + 47, size.width - 12);
    }
    pen.strokeStyle = box.node.SchedulingEligibility === "eligible" ? colors.line : colors.warn;
    pen.strokeRect(x + 0.5, y + 0.5, size.width - 1, size.height - 1);
  });
}
