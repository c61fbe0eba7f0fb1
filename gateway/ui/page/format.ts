// How things are written.

export function short(id: string | undefined): string {
  return (id ?? "").slice(0, 8);
}

/** Nanoseconds since 1970, or RFC 3339; null where the time has not come. */
export function instant(time: number | string | null | undefined): Date | null {
  if (!time) return null;
  const date = new Date(typeof time === "number" ? time / 1e6 : time);
  return Number.isNaN(date.getTime()) || date.getTime() <= 0 ? null : date;
}

export function clock(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function timeOfDay(date: Date): string {
  return clock(date).slice(11);
}

export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
  return `${Math.floor(seconds / 86400)}d ${Math.floor((seconds % 86400) / 3600)}h`;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

export function mib(count: number): string {
  return bytes(count * 1024 * 1024);
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}
