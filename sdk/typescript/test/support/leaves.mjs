// Starts sessions, tells their ids, and waits to be killed.
import { Session } from "../../dist/esm/index.js";

const fleeting = [await Session.start(), await Session.start({ language: "python" })];
const lasting = [await Session.start({ name: "lasting" }), await Session.start({ keep: true })];
for (const session of lasting) await session.exec("x=1");
const ids = (sessions) => sessions.map(({ id }) => id);
console.log(JSON.stringify({ fleeting: ids(fleeting), lasting: ids(lasting) }));
setInterval(() => {}, 1_000_000);
