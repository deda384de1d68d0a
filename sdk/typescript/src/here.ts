// Where this package is. The CommonJS build has a file of its own for this line
// (scripts/build.mjs).
// @ts-ignore: `import.meta` does not exist in CommonJS
export const here: string = import.meta.url;
