/** By this name Node and Bun ask an object what to show of it: not its connections, and not the token. */
export const SHOWN: unique symbol = Symbol.for("nodejs.util.inspect.custom") as never;
