// What `cargo xtask web` makes of the crate `web`: web/src/engine.rs.

/** Loads it. */
export default function init(): Promise<unknown>;

/** A run, and the way to it; it tells by `postMessage`. */
export class Engine {
  /** The names and values of the page's address, as JSON. */
  constructor(address: string);
  /** The page asks for something. */
  hear(text: string): void;
  /** A message has reached the page. */
  seen(): void;
}
