import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { root } from "#host";
import { get, post } from "../api/http";
import type { Notification, NotificationPage } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { ago, date } from "../lib/format";
import { Button } from "../parts/Button";
import { Pager } from "../parts/Pager";
import { Pending, useResource } from "../parts/Resource";
import { pathOf } from "../router";
import { addressOf, datasets } from "../state/datasets";
import { say, sayError } from "../state/notices";
import { loadUnread, notificationVersion, unread } from "../state/notifications";
import { t } from "../texts";

const MOST = 50;

/** The notifications of the user, the newest first; those that come are shown at once. */
export default function Notifications() {
  const offset = useSignal(0);
  const unreadOnly = useSignal(false);
  const list = useRef<HTMLUListElement>(null);
  const page = useResource<NotificationPage>(
    (signal) =>
      get("/notifications", { limit: MOST, offset: offset.value, unread_only: unreadOnly.value || null }, signal),
    [offset.value, unreadOnly.value, notificationVersion.value],
  );
  const found = page.value?.notifications ?? [];
  const links = (): HTMLAnchorElement[] => [...(list.current?.querySelectorAll("a") ?? [])];
  const focused = (): number => links().findIndex((link) => link.parentElement?.contains(root.activeElement));
  const move = (by: number): void => {
    const all = links();
    all[Math.min(Math.max(0, focused() + by), all.length - 1)]?.focus();
  };
  const readAll = async (): Promise<void> => {
    try {
      const { count } = await post<{ count: number }>("/notifications/read-all");
      say(t.notifications.allRead(count));
      await loadUnread();
    } catch (error) {
      sayError(error);
    }
  };
  useKeys("notifications", {
    next: () => move(1),
    previous: () => move(-1),
    read: () => void read(found[focused()]),
    "read.all": () => void readAll(),
  });
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.navigation.notifications}</h1>
        <label class="inline">
          <input
            type="checkbox"
            checked={unreadOnly.value}
            onChange={(event) => {
              unreadOnly.value = event.currentTarget.checked;
              offset.value = 0;
            }}
          />
          {t.notifications.unreadOnly}
        </label>
        {unread.value > 0 && (
          <Button hint="Shift R" onClick={() => void readAll()}>
            {t.notifications.readAll}
          </Button>
        )}
      </header>
      {!page.value && <Pending of={page} />}
      {page.value && found.length === 0 && (
        <p class="empty">{unreadOnly.value ? t.notifications.noneUnread : t.notifications.none}</p>
      )}
      <ul class="rows" ref={list}>
        {found.map((each) => (
          <li key={each.id}>
            <OneNotification notification={each} />
          </li>
        ))}
      </ul>
      {page.value && <Pager offset={offset} size={MOST} shown={found.length} total={page.value.total} />}
    </div>
  );
}

/** Mark a notification as read; one that was read elsewhere meanwhile is no problem. */
async function read(notification: Notification | undefined): Promise<void> {
  if (!notification || notification.read_at !== null) return;
  await post(`/notifications/${notification.id}/read`).catch(() => {});
  await loadUnread().catch(sayError);
}

function OneNotification({ notification }: { notification: Notification }) {
  const { result_count, view_name, dataset_name } = notification.metadata;
  const words = t.notifications.text(result_count, view_name, dataset_name);
  const of = datasets.value?.find((each) => each.id === notification.dataset_id);
  const isUnread = notification.read_at === null;
  return (
    <>
      <a
        href={
          of
            ? pathOf(
                addressOf(of),
                "views",
                null,
                new URLSearchParams({ view: notification.entity_id, batch: notification.metadata.batch_id }).toString(),
              )
            : "/notifications"
        }
        onClick={() => void read(notification)}
      >
        {isUnread ? <strong>{words}</strong> : words}
      </a>
      {isUnread && <span class="status">{t.notifications.unread}</span>}
      <span class="hint" title={date(notification.created_at)}>
        {ago(notification.created_at)}
      </span>
      <span class="grow" />
      {isUnread && (
        <Button kind="quiet" onClick={() => void read(notification)}>
          {t.notifications.read}
        </Button>
      )}
    </>
  );
}
