/** The notifications of the user: how many were not read, and when to read the list again. */
import { signal } from "@preact/signals";
import { listen } from "../api/events";
import { get } from "../api/http";
import type { NotificationPage } from "../api/types";
import { t } from "../texts";
import { say } from "./notices";

/** The number of notifications that were not read. */
export const unread = signal(0);
/** Changes whenever the list of notifications may have changed. */
export const notificationVersion = signal(0);

/** Read how many notifications were not read. */
export async function loadUnread(): Promise<void> {
  unread.value = (await get<{ count: number }>("/notifications/unread-count")).count;
  notificationVersion.value++;
}

let hasOpened = false;

async function tellNewest(): Promise<void> {
  const before = unread.peek();
  await loadUnread();
  if (unread.peek() <= before) return; // an alert for others
  const page = await get<NotificationPage>("/notifications", { limit: 1, unread_only: true });
  const found = page.notifications[0]?.metadata;
  if (found)
    say(t.notifications.arrived(t.notifications.text(found.result_count, found.view_name, found.dataset_name)));
}

/** Follow the events of the server. */
export function startNotifications(): void {
  listen((name) => {
    if (name === "notification") void tellNewest().catch(() => {});
    if (name === "open" && !hasOpened)
      hasOpened = true; // all was just read
    else if (name === "open" || name === "lost") void loadUnread().catch(() => {});
  });
}
