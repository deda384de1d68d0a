// Counts the tokens of its stdin.

import { load } from './scenario.mjs';

const { encode } = await load('gpt-tokenizer/encoding/o200k_base');
const pieces = [];
for await (const piece of process.stdin) pieces.push(piece);
console.log(encode(Buffer.concat(pieces).toString()).length);
