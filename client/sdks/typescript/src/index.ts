export { type Answer, type Given, SojournError } from "./answer.js";
export * from "./api.js";
export { Client, type ClientOptions } from "./client.js";
export type { Event, EventOptions, Gap } from "./events.js";
