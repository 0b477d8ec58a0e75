import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { strToU8, zipSync } from "fflate";

interface Floats {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** Writes a `.npz` file with an array of float32 of the same name; returns its path. */
export async function writeFloatsNpz(
  folder: string,
  name: string,
  floats: Floats,
): Promise<string> {
  const path = join(folder, `${name}.npz`);
  await writeArraysNpz(path, { [name]: floats });
  return path;
}

/** Writes a `.npz` file with arrays of float32. */
export async function writeArraysNpz(
  path: string,
  arrays: Readonly<Record<string, Floats>>,
): Promise<void> {
  const files = Object.entries(arrays).map(([name, floats]) => [`${name}.npy`, npy(floats)]);
  await writeFile(path, zipSync(Object.fromEntries(files)));
}

function npy({ shape, values }: Floats): Buffer {
  const header =
    `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join()},), }`.padEnd(117) + "\n";
  const magic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length, 0);
  return Buffer.concat([magic, strToU8(header), new Uint8Array(Float32Array.from(values).buffer)]);
}
