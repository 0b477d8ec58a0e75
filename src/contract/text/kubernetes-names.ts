import { z } from "zod";

/** The name of a label of the DNS, and so of a namespace. */
export const dnsLabel = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, {
    error: "must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end",
  });

/** An amount of bytes or of CPU. */
export const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$/, {
  error: "must be an amount such as 4, 500m or 16Gi",
});

const factors: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  Ki: 2 ** 10,
  M: 1e6,
  Mi: 2 ** 20,
  G: 1e9,
  Gi: 2 ** 30,
  T: 1e12,
  Ti: 2 ** 40,
  P: 1e15,
  Pi: 2 ** 50,
};

/** The bytes, or the processors, of a `quantity`. */
export function quantityValue(text: string): number {
  const [, amount, suffix = ""] = /^([0-9.]+)(.*)$/.exec(text) ?? [];
  return Number(amount) * (factors[suffix] ?? 1);
}

/** Objects that have one of the fields and no other of them. */
export function hasExactlyOne(fields: readonly string[]) {
  return {
    check: (object: object) =>
      Object.entries(object).filter(
        ([field, value]) => fields.includes(field) && value !== undefined,
      ).length === 1,
    error: `must have exactly one of ${fields.join(", ")}`,
  };
}
