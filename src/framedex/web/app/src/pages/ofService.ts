/** The pages that are about no dataset. */
export { default as Account } from "./Account";
export { default as Admin } from "./Admin";
export { default as Home } from "./Home";
export { default as Import } from "./Import";
export { default as Login } from "./Login";
export { default as Notifications } from "./Notifications";
export { default as Tasks } from "./Tasks";
export { default as Users } from "./Users";
