import type { ComponentChildren } from "preact";
import { BASE, leave, Main, root } from "#host";
import { count } from "../lib/format";
import { pathOf, route } from "../router";
import { addressOf, dataset, datasets, stats } from "../state/datasets";
import { unread } from "../state/notifications";
import { theme } from "../state/preferences";
import { authIsOff, isAdmin, logOut, profile, seesUsers } from "../state/session";
import { t } from "../texts";
import { Icon } from "./Icon";
import { SearchBox } from "./SearchBox";
import { StatusBar } from "./StatusBar";

const OF_DATASET = [
  "overview",
  "pictures",
  "clusters",
  "map",
  "duplicates",
  "labels",
  "issues",
  "cleanup",
  "history",
  "views",
  "settings",
] as const;

/** The frame around all pages: banner, navigation, content, status. */
export function Shell({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={(event) => focusContent(event)}>
        {t.skip}
      </a>
      <Banner />
      {dataset.value && <Navigation />}
      <Main id="content" tabIndex={-1} class={dataset.value ? "" : "alone"} aria-label={t.content}>
        {children}
      </Main>
      <StatusBar />
    </div>
  );
}

function focusContent(event: Event): void {
  event.preventDefault();
  root.getElementById("content")?.focus();
}

function Banner() {
  const found = dataset.value;
  return (
    <header class="banner">
      <a class="brand" href="/">
        {t.app}
      </a>
      {found && (
        <select
          class="dataset-choice"
          aria-label={t.home.title}
          value={found.id}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {(datasets.value ?? []).map((each) => (
            <option key={each.id} value={each.id}>
              {each.display_name}
            </option>
          ))}
        </select>
      )}
      {found ? <SearchBox /> : <span class="grow" />}
      <a
        class="plain-link bell"
        href="/notifications"
        aria-label={t.notifications.bell(unread.value)}
        title={t.notifications.bell(unread.value)}
      >
        <Icon name="bell" />
        {unread.value > 0 && <span class="unread">{count(unread.value)}</span>}
      </a>
      <a class="plain-link" href="/tasks">
        {t.navigation.tasks}
      </a>
      {seesUsers.value && (
        <a class="plain-link" href="/users">
          {t.navigation.users}
        </a>
      )}
      {isAdmin.value && (
        <a class="plain-link" href="/admin">
          {t.navigation.admin}
        </a>
      )}
      <select
        class="theme-choice"
        aria-label={t.theme.name}
        value={theme.value}
        onChange={(event) => {
          theme.value = event.currentTarget.value;
        }}
      >
        <option value="system">{t.theme.system}</option>
        <option value="light">{t.theme.light}</option>
        <option value="dark">{t.theme.dark}</option>
      </select>
      {profile.value && !authIsOff.value && (
        <>
          <a class="plain-link" href="/account">
            {profile.value.username}
          </a>
          <button type="button" class="button quiet" onClick={() => void logOut()}>
            {t.account.logOut}
          </button>
        </>
      )}
    </header>
  );
}

function choose(id: string): void {
  const found = (datasets.value ?? []).find((each) => each.id === id);
  if (found) leave(BASE + pathOf(addressOf(found)));
}

function Navigation() {
  const found = dataset.value!;
  const name = addressOf(found);
  const present = route.value.page;
  return (
    <nav aria-label={t.navigation.name}>
      <ul>
        {OF_DATASET.map((page) => {
          const badge = badgeOf(page);
          return (
            <li key={page}>
              <a href={pathOf(name, page)} aria-current={page === present ? "page" : undefined}>
                <Icon name={page} />
                <span class="words">{t.navigation[page]}</span>
                {badge > 0 && <span class="badge">{count(badge)}</span>}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

/** The number of findings of a page. */
function badgeOf(page: string): number {
  const issues = stats.value?.issues ?? [];
  const of = (name: string): number => issues.find((each) => each.issue_type === name)?.count ?? 0;
  if (page === "duplicates") return of("duplicates");
  if (page === "labels") return of("mislabels");
  if (page === "issues") {
    const others = issues.filter((each) => !["duplicates", "mislabels"].includes(each.issue_type));
    return others.reduce((sum, each) => sum + each.count, 0);
  }
  return 0;
}
