// A picture that is drawn: in the colours of the page, again when they or its size change.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export type Colors = Record<"ground" | "panel" | "raised" | "line" | "edge" | "text" | "quiet" | "accent" | "good" | "warn" | "bad" | "mark", string>;

const NAMES = ["ground", "panel", "raised", "line", "edge", "text", "quiet", "accent", "good", "warn", "bad", "mark"] as const;

/** The colours that the page has now: a canvas takes none by its name. */
export function colorsIn(box: Element): Colors {
  const probe = document.createElement("i");
  box.append(probe);
  const style = getComputedStyle(probe);
  const named = NAMES.map((key) => {
    probe.style.color = `var(--${key})`;
    return [key, style.color];
  });
  probe.remove();
  return Object.fromEntries(named) as Colors;
}

/** Past it, browsers draw nothing at all. */
const TALLEST = 16000;

export interface Pointed {
  x: number;
  y: number;
}

export function Picture({
  name,
  height,
  paint,
  point,
  click,
}: {
  /** What it shows, for those who do not see it. */
  name: string;
  height: (width: number) => number;
  paint: (pen: CanvasRenderingContext2D, width: number, height: number, colors: Colors) => void;
  /** What is at a place, in words. */
  point?: (place: Pointed, width: number) => string;
  click?: (place: Pointed, width: number) => void;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    const draw = (): void => {
      const pen = canvas.current?.getContext("2d");
      if (!canvas.current || !pen || !box.current) return;
      const width = box.current.clientWidth;
      const tall = Math.min(TALLEST, height(width));
      const scale = tall * devicePixelRatio > TALLEST ? 1 : devicePixelRatio;
      canvas.current.width = width * scale;
      canvas.current.height = tall * scale;
      canvas.current.style.width = `${width}px`;
      canvas.current.style.height = `${tall}px`;
      pen.scale(scale, scale);
      pen.font = `12px ${getComputedStyle(box.current).fontFamily}`;
      pen.textBaseline = "middle";
      paint(pen, width, tall, colorsIn(box.current));
    };
    const frame = requestAnimationFrame(draw);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("resize", draw);
    scheme.addEventListener("change", draw);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("resize", draw);
      scheme.removeEventListener("change", draw);
    };
  });
  const place = (event: MouseEvent): Pointed => {
    const edge = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };
  const width = (): number => box.current?.clientWidth ?? 0;
  return (
    <>
      <div class="picture" ref={box} tabIndex={0} role="region" aria-label={name}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={name}
          onMouseMove={(event) => point && setText(point(place(event), width()))}
          onMouseLeave={() => setText("")}
          onClick={(event) => click?.(place(event), width())}
        />
      </div>
      <p class="pointed quiet" aria-live="off">
        {text || "Point at something to see what it is; click to go there."}
      </p>
    </>
  );
}
