const addColumns = [
  "alter table webhooks add column waiting_deliveries integer not null default 0",
  "alter table webhooks add column skipped_events integer not null default 0",
  "alter table webhooks add column last_skipped_at ordered_text",
];

/** Comes last, as in the migration of waiting jobs. */
const countPresent = `update webhooks set waiting_deliveries = (
    select count(*) from webhook_deliveries
    where webhook_id = webhooks.id and next_attempt_at is not null)`;

const isWaiting = (row: "old" | "new") => `${row}.next_attempt_at is not null`;

/** What changes how many deliveries wait besides new ones, and by how many. */
const changes = [
  ["replay", 1, "update of next_attempt_at", `not ${isWaiting("old")} and ${isWaiting("new")}`],
  ["end", -1, "update of next_attempt_at", `${isWaiting("old")} and not ${isWaiting("new")}`],
  ["delete", -1, "delete", isWaiting("old")],
] as const;

function addDeliveries(count: string, webhook: string): string {
  return `update webhooks set waiting_deliveries = waiting_deliveries + ${count}
    where id = ${webhook}`;
}

export const sqliteWaitingDeliveries = [
  ...addColumns,
  `create trigger waiting_deliveries_insert after insert on webhook_deliveries
    when ${isWaiting("new")} begin ${addDeliveries("1", "new.webhook_id")}; end`,
  ...changes.map(
    ([name, count, change, condition]) => `create trigger waiting_deliveries_${name}
      after ${change} on webhook_deliveries when ${condition}
      begin ${addDeliveries(`(${count})`, "old.webhook_id")}; end`,
  ),
  countPresent,
];

const newDeliveries = `update webhooks
  set waiting_deliveries = waiting_deliveries + new_ones.deliveries
  from (
    select webhook_id, count(*) as deliveries from added
    where next_attempt_at is not null group by webhook_id) as new_ones
  where id = new_ones.webhook_id`;

export const postgresWaitingDeliveries = [
  ...addColumns,
  `create function count_new_deliveries() returns trigger language plpgsql as $$
    begin ${newDeliveries}; return null; end $$`,
  `create trigger waiting_deliveries_insert after insert on webhook_deliveries
    referencing new table as added for each statement execute function count_new_deliveries()`,
  `create function count_changed_delivery() returns trigger language plpgsql as $$
    begin ${addDeliveries("tg_argv[0]::integer", "old.webhook_id")}; return null; end $$`,
  ...changes.map(
    ([name, count, change, condition]) => `create trigger waiting_deliveries_${name}
      after ${change} on webhook_deliveries for each row when (${condition})
      execute function count_changed_delivery('${count}')`,
  ),
  countPresent,
];
