// `await using` needs these names, which Node has from 18.18 on.
const names = Symbol as { dispose?: symbol; asyncDispose?: symbol };
names.dispose ??= Symbol.for("Symbol.dispose");
names.asyncDispose ??= Symbol.for("Symbol.asyncDispose");

export {};
