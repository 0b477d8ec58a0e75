const [name = ""] = process.argv.slice(2);
if (!/^[a-z0-9-]+$/.test(name)) {
  process.stderr.write("Usage: npm run bench -- NAME, with NAME one of the files in bench/\n");
  process.exit(2);
}
await import(`./${name}.ts`);
