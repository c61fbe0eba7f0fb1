// A picture that is drawn: as much of it as is seen, in the colours of the page, again when they, its size or what is seen change.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

const NAMES = ["ground", "panel", "raised", "line", "edge", "text", "quiet", "accent", "good", "warn", "bad", "mark"] as const;

export type Colors = Record<(typeof NAMES)[number], string>;

let read: Colors | undefined;

/** The colours that the page has now: a canvas takes none by its name. Reading them costs more than drawing with them. */
export function pageColors(): Colors {
  if (read) return read;
  const probe = document.createElement("i");
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const named = NAMES.map((key) => {
    probe.style.color = `var(--${key})`;
    return [key, style.color];
  });
  probe.remove();
  read = Object.fromEntries(named) as Colors;
  return read;
}

/** Calls when the page has other colours, or another size. Gives what ends it. */
export function onLook(draw: () => void): () => void {
  const changed = (): void => {
    read = undefined;
    draw();
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  addEventListener("resize", changed);
  scheme.addEventListener("change", changed);
  return () => {
    removeEventListener("resize", changed);
    scheme.removeEventListener("change", changed);
  };
}

export interface Pointed {
  x: number;
  y: number;
}

/** What is seen of a picture: drawn in the coordinates of the whole. */
export interface Seen {
  width: number;
  top: number;
  bottom: number;
}

export function Picture({
  name,
  height,
  paint,
  point,
  click,
  zoom,
}: {
  /** What it shows, for those who do not see it. */
  name: string;
  height: (width: number) => number;
  paint: (pen: CanvasRenderingContext2D, seen: Seen, colors: Colors) => void;
  /** What is at a place, in words. */
  point?: (place: Pointed, width: number) => string;
  click?: (place: Pointed, width: number) => void;
  /** Larger or smaller by a step. Gives how far down what was at a place is then, or null where there is no further step. */
  zoom?: (step: 1 | -1, place: Pointed, width: number) => number | null;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  // What a mark that moves says must not draw the picture again.
  const text = useSignal("");
  const now = useRef({ height, paint, zoom });
  now.current = { height, paint, zoom };
  /** Where to scroll once the picture has its new height. */
  const goal = useRef<number | null>(null);
  const frame = useRef(0);
  const draw = (): void => {
    frame.current = 0;
    if (box.current && sheet.current && canvas.current) drawSeen(box.current, sheet.current, canvas.current, now.current, goal);
  };
  const soon = (): void => {
    frame.current ||= requestAnimationFrame(draw);
  };
  useLayoutEffect(soon, [paint]);
  useEffect(() => {
    const resized = new ResizeObserver(soon);
    resized.observe(box.current!);
    const ends = onLook(soon);
    const wheel = (event: WheelEvent): void => {
      if (!now.current.zoom || !(event.ctrlKey || event.metaKey) || event.deltaY === 0) return;
      event.preventDefault();
      const at = place(event);
      const next = now.current.zoom(event.deltaY < 0 ? 1 : -1, at, width());
      if (next !== null) goal.current = Math.max(0, next - (at.y - box.current!.scrollTop));
    };
    // Not passive, so that the browser does not make the whole page larger.
    box.current!.addEventListener("wheel", wheel, { passive: false });
    return () => {
      cancelAnimationFrame(frame.current);
      frame.current = 0;
      resized.disconnect();
      ends();
    };
  }, []);
  const place = (event: MouseEvent): Pointed => {
    const edge = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top + box.current!.scrollTop };
  };
  const width = (): number => box.current?.clientWidth ?? 0;
  return (
    <>
      <div class="picture" ref={box} tabIndex={0} role="region" aria-label={name} onScroll={soon}>
        <div ref={sheet}>
          <canvas
            ref={canvas}
            role="img"
            aria-label={name}
            onMouseMove={(event) => point && (text.value = point(place(event), width()))}
            onMouseLeave={() => (text.value = "")}
            onClick={(event) => click?.(place(event), width())}
          />
        </div>
      </div>
      <Pointing at={text} />
    </>
  );
}

function Pointing({ at }: { at: { value: string } }): JSX.Element {
  return (
    <p class="pointed quiet" aria-live="off">
      {at.value || "Point at something to see what it is; click to go there."}
    </p>
  );
}

interface Drawing {
  height: (width: number) => number;
  paint: (pen: CanvasRenderingContext2D, seen: Seen, colors: Colors) => void;
}

/** The canvas is as large as what is seen, and stays in sight; the sheet behind it is as tall as the whole. */
function drawSeen(box: HTMLElement, sheet: HTMLElement, canvas: HTMLCanvasElement, of: Drawing, goal: { current: number | null }): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const tall = `${of.height(box.clientWidth)}px`;
  if (sheet.style.height !== tall) sheet.style.height = tall;
  if (goal.current !== null) box.scrollTop = goal.current;
  goal.current = null;
  const [width, high, top] = [box.clientWidth, box.clientHeight, box.scrollTop];
  const scale = devicePixelRatio;
  const [across, down] = [Math.round(width * scale), Math.round(high * scale)];
  // Setting a size throws away what is drawn, and memory with it, even if it is the same size.
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${high}px`;
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, high);
  pen.translate(0, -top);
  const font = `12px ${getComputedStyle(box).fontFamily}`;
  if (pen.font !== font) pen.font = font;
  pen.textBaseline = "middle";
  of.paint(pen, { width, top, bottom: top + high }, pageColors());
}
