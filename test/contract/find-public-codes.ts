import { type Expression, parseSync, type PropertyKey, Visitor } from "oxc-parser";

export interface PublicCode {
  readonly file: string;
  readonly code: string;
}

const codeFields: ReadonlySet<string> = new Set(["reason", "statusReason", "code"]);
const codePattern = /^[a-z]+(_[a-z]+)*$/;
const eventReasonPattern = /^[A-Z][A-Za-z]+$/;

/**
 * Codes that a source file gives to callers: what it assigns to the fields `reason`, `statusReason` and
 * `code`, and the codes of the errors that it creates. Reasons in CamelCase are those of events and conditions.
 */
export function findPublicCodes(file: string, text: string): readonly PublicCode[] {
  const codes: PublicCode[] = [];
  const add = (value: Expression | undefined) => {
    for (const code of stringValues(value)) {
      if (codePattern.test(code) || eventReasonPattern.test(code)) codes.push({ file, code });
    }
  };
  const visitor = new Visitor({
    Property({ key, value }) {
      if (codeFields.has(propertyName(key))) add(value as Expression);
    },
    NewExpression({ callee, arguments: [first] }) {
      if (callee.type === "Identifier" && callee.name === "ServiceError") add(first as Expression);
    },
  });
  visitor.visit(parseSync(file, text, { preserveParens: false }).program);
  return codes;
}

function propertyName(key: PropertyKey): string {
  return key.type === "Identifier" ? key.name : "";
}

/** The strings that an expression can have: itself, or either branch of a condition. */
function stringValues(value: Expression | undefined): readonly string[] {
  if (value?.type === "Literal") return typeof value.value === "string" ? [value.value] : [];
  if (value?.type === "TSAsExpression") return stringValues(value.expression);
  if (value?.type !== "ConditionalExpression") return [];
  return [...stringValues(value.consequent), ...stringValues(value.alternate)];
}
