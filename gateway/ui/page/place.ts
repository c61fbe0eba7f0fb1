// Where the page is: path, query, and the moment that is looked at. The address is the only place where these are kept.

import { computed, signal } from "@preact/signals";

const ROOT = "/ui";

const here = signal(location.pathname + location.search);

addEventListener("popstate", () => {
  here.value = location.pathname + location.search;
});

const url = computed(() => new URL(here.value, location.origin));

/** The parts of the path below `/ui`, decoded. */
export const parts = computed(() => {
  const rest = url.value.pathname.slice(ROOT.length);
  return rest.split("/").filter((part) => part !== "").map(decoded);
});

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The moment that every view shows, as `as_of` takes it; null for the present. */
export const at = computed(() => url.value.searchParams.get("at") || null);

/** The namespace whose objects lists show; `*` for all. */
export const namespace = computed(() => url.value.searchParams.get("namespace") || "*");

export function param(name: string): string {
  return url.value.searchParams.get(name) ?? "";
}

/** The address of a view: the moment and the namespace stay as they are. */
export function address(...path: string[]): string {
  const kept = new URLSearchParams();
  for (const name of ["at", "namespace"]) {
    const value = url.value.searchParams.get(name);
    if (value) kept.set(name, value);
  }
  const query = kept.toString();
  return `${ROOT}/${path.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}

/** The view that tries a change out. */
export function trying(change: string): string {
  const to = address("whatif");
  return `${to}${to.includes("?") ? "&" : "?"}try=${encodeURIComponent(change)}`;
}

/** The view that sets a moment beside now. */
export function since(moment: string): string {
  const space = param("namespace");
  return `${ROOT}/compare?from=${encodeURIComponent(moment)}${space && `&namespace=${encodeURIComponent(space)}`}`;
}

export function go(to: string): void {
  if (to === here.value) return;
  history.pushState(null, "", to);
  here.value = to;
  scrollTo(0, 0);
}

/** Changes parts of the query. An empty value takes its name out. */
export function change(values: Record<string, string>, keepsHistory = true): void {
  const next = new URL(url.value);
  for (const [name, value] of Object.entries(values)) {
    if (value) next.searchParams.set(name, value);
    else next.searchParams.delete(name);
  }
  const to = next.pathname + next.search;
  if (to === here.value) return;
  if (keepsHistory) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  here.value = to;
}

/** `JOB@NAMESPACE` as the command line prints it. */
export function named(text: string): { id: string; ns: string } {
  const cut = text.lastIndexOf("@");
  if (cut > 0) return { id: text.slice(0, cut), ns: text.slice(cut + 1) };
  return { id: text, ns: namespace.value === "*" ? "default" : namespace.value };
}
