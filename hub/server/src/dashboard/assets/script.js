// The one script of the pages. A page works without it; with it, it is live, and what is wrong stands beside the field.
"use strict";
(() => {
  const body = document.body;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Light or dark: what the system says, unless somebody has chosen.
  const theme = localStorage.getItem("theme");
  const root = document.documentElement.dataset;
  if (theme) root.theme = theme;
  for (const button of $$("[data-theme]:not(html)")) button.addEventListener("click", () => {
    const dark = root.theme ? root.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.theme);
  });

  $("[data-menu]")?.addEventListener("click", (click) => {
    const open = $("#nav").classList.toggle("open");
    click.currentTarget.setAttribute("aria-expanded", String(open));
  });

  // A link to log in has the key behind the hash, which never leaves the browser but for this form.
  const login = $("[data-login]");
  if (login && location.hash.length > 1) {
    login.elements.key.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname + location.search);
    login.submit();
  }

  // Times as people say them, with the exact one on top of it.
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const ago = (seconds) => {
    for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]])
      if (Math.abs(seconds) >= size) return words.format(-Math.round(seconds / size), unit);
    return Math.abs(seconds) < 5 ? "now" : words.format(-Math.round(seconds), "second");
  };
  const tell = () => {
    for (const time of $$("time[datetime]")) {
      const at = Date.parse(time.dateTime);
      if (!Number.isNaN(at)) {
        const said = ago((Date.now() - at) / 1000);
        if (time.textContent !== said) time.textContent = said;
      }
    }
  };
  tell();
  setInterval(tell, 1000);

  const toast = (text, bad) => {
    const box = document.createElement("div");
    box.className = bad ? "toast bad" : "toast";
    box.textContent = text;
    $(".toasts")?.append(box);
    setTimeout(() => box.remove(), bad ? 10000 : 4000);
  };

  // Somebody says that they mean it, and why.
  const confirm = (text, button) => new Promise((done) => {
    const dialog = $("dialog.confirm");
    $("[data-text]", dialog).textContent = text;
    $("[data-yes]", dialog).textContent = button?.textContent.trim() || "Do it";
    const reason = $("[name=reason]", dialog);
    reason.value = "";
    dialog.returnValue = "no";
    dialog.onclose = () => done(dialog.returnValue === "yes" ? { reason: reason.value } : null);
    dialog.showModal();
    reason.focus();
  });

  // What has a field of its own wins over the same in a piece of JSON.
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const over = (under, top) => {
    if (!isObject(under) || !isObject(top)) return top === undefined ? under : top;
    const both = { ...under };
    for (const name in top) both[name] = over(under[name], top[name]);
    return both;
  };

  // The fields of a form as the body of a call: the same as the server reads from a form.
  const read = (form, submitter) => {
    const call = { method: "POST", body: {} };
    const data = new FormData(form, submitter);
    for (const [name, raw] of data) {
      if (name === "_csrf") continue;
      if (name[0] === "_") { call[name.slice(1)] = raw; continue; }
      if (raw === "") continue;
      const [path, kind = "text"] = name.split(":");
      let value = raw;
      if (kind === "number") value = Number(raw);
      else if (kind === "flag") value = raw === "on" || raw === "true" || raw === "1";
      else if (kind === "list") value = raw.split(/[,\n]/).map((one) => one.trim()).filter(Boolean);
      else if (kind === "json") {
        try { value = JSON.parse(raw); } catch (error) { return { wrong: [{ field: path, reason: `this is no JSON: ${error.message}` }] }; }
      }
      else if (kind === "pairs") {
        value = {};
        for (const line of raw.split("\n").filter((line) => line.trim())) {
          const [name, ...rest] = line.split(":");
          value[name.trim()] = rest.join(":").trim();
        }
      }
      const parts = path.split(".");
      const last = parts.pop();
      let place = call.body;
      for (const part of parts) place = isObject(place[part]) ? place[part] : place[part] = {};
      place[last] = kind === "list" ? (place[last] || []).concat(value) : over(value, place[last]);
    }
    if (!Object.keys(call.body).length) delete call.body;
    return { call };
  };

  const call = async (what) => {
    const response = await fetch("/act", {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf": body.dataset.csrf },
      body: JSON.stringify(what),
    });
    const answer = await response.json().catch(() => ({}));
    return { ok: response.ok, status: response.status, answer };
  };

  const clear = (form) => {
    for (const wrong of $$(".field-wrong, .form-wrong", form)) wrong.remove();
    for (const field of $$("[aria-invalid]", form)) field.removeAttribute("aria-invalid");
  };

  // What is wrong stands beside its field, and above the form what belongs to none.
  const show = (form, message, errors) => {
    clear(form);
    const rest = [];
    for (const { field, reason } of errors || []) {
      const input = $$("[name]", form).find((one) => one.name.split(":")[0] === field && !one.matches(":disabled"));
      if (!input || input.type === "hidden") { rest.push(`${field}: ${reason}`); continue; }
      const said = document.createElement("span");
      said.className = "field-wrong";
      said.textContent = reason;
      input.setAttribute("aria-invalid", "true");
      input.after(said);
    }
    const words = rest.length ? rest.join("; ") : errors?.length ? "" : message;
    if (words) {
      if (form.classList.contains("action")) toast(words, true);
      else {
        const said = document.createElement("p");
        said.className = "wrong form-wrong";
        said.setAttribute("role", "alert");
        said.textContent = words;
        form.prepend(said);
      }
    }
    $("[aria-invalid]", form)?.focus();
  };

  document.addEventListener("submit", async (submit) => {
    const form = submit.target;
    if (!form.matches("form[data-act]")) return;
    submit.preventDefault();
    const { call: what, wrong } = read(form, submit.submitter);
    if (wrong) return show(form, "", wrong);
    const text = submit.submitter?.dataset.confirm || form.dataset.confirm;
    if (text) {
      const said = await confirm(text.replace("{chosen}", $$("[data-one]:checked", form).length), submit.submitter);
      if (!said) return;
      if (said.reason) what.reason = said.reason;
    }
    const buttons = $$("button", form).filter((button) => !button.disabled);
    for (const button of buttons) button.disabled = true;
    try {
      const { ok, status, answer } = await call(what);
      if (ok) {
        clear(form);
        if (form.dataset.answer) { said(form.dataset.answer, answer.data); refresh(); return; }
        const to = (what.to || "").replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(answer.data?.[name] ?? ""));
        if (to && to !== location.pathname + location.search) location.assign(to);
        else { toast(what.done || "Done."); refresh(); }
      } else if (status === 401) location.assign("/login?to=" + encodeURIComponent(location.pathname + location.search));
      else show(form, answer.message || "The hub did not answer.", answer.errors);
    } catch {
      toast("The hub can't be reached.", true);
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  });

  // One box for all of a list; what can be done to some of it is there when some are chosen.
  const chosen = () => {
    for (const form of $$("form[data-choice]")) {
      const some = $$("[data-one]:checked", form).length;
      for (const button of $$("[data-some]", form)) button.disabled = !some;
      const told = $("[data-chosen]", form);
      if (told) told.textContent = some ? `${some} chosen` : "none chosen";
    }
  };
  document.addEventListener("change", (change) => {
    const form = change.target.closest("form[data-choice]");
    if (!form) return;
    if (change.target.matches("[data-all]")) for (const box of $$("[data-one]", form)) box.checked = change.target.checked;
    chosen();
  });
  document.addEventListener("fresh", chosen);
  chosen();

  document.addEventListener("click", async (click) => {
    const button = click.target.closest("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy)?.textContent ?? "";
    await navigator.clipboard?.writeText(text).then(() => toast("Copied."), () => toast("The browser did not allow it.", true));
  });

  // Puts in what has changed; what somebody is typing into or has opened stays as it is.
  const put = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of $$("[data-live][id]", fresh)) {
      const old = document.getElementById(part.id);
      if (!old) continue;
      const open = $$("details[open][id]", old).map((one) => one.id);
      const chosen = $$("input[type=checkbox]:checked[value]", old).map((one) => one.value);
      if (old.innerHTML === part.innerHTML) continue;
      const at = document.activeElement;
      const inside = old.contains(at) && at !== old;
      if (inside && at.matches("input:not([type=checkbox]), textarea, select")) continue;
      const key = inside ? at.id || at.getAttribute("href") || at.textContent : null;
      old.innerHTML = part.innerHTML;
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      for (const box of $$("input[type=checkbox]", old)) if (chosen.includes(box.value)) box.checked = true;
      if (key) $$("a, button, summary, input", old).find((one) => (one.id || one.getAttribute("href") || one.textContent) === key)?.focus();
    }
    tell();
    document.dispatchEvent(new CustomEvent("fresh"));
  };
  const refresh = async () => {
    const response = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    if (response.ok) put(await response.text());
  };

  // The page anew, whenever it has changed.
  const lamp = $(".live");
  if (body.dataset.page && $("[data-live]")) {
    const state = (word) => { if (lamp) { lamp.dataset.state = word; $("span", lamp).textContent = word === "on" ? "live" : "offline"; } };
    const stream = new EventSource("/live?page=" + encodeURIComponent(body.dataset.page));
    stream.addEventListener("open", () => state("on"));
    stream.addEventListener("error", () => state("off"));
    stream.addEventListener("page", (event) => put(event.data));
    addEventListener("pagehide", () => stream.close());
  } else if (lamp) lamp.hidden = true;

  // What a call has answered, in lines; or `box.field`, that alone.
  const said = (to, data) => {
    const [id, only] = to.split(".");
    const box = document.getElementById(id);
    const word = (value) => typeof value === "string" ? value : JSON.stringify(value);
    if (only) $("pre", box).textContent = data[only];
    else box.textContent = Object.entries(data || {}).map(([name, value]) => `${name}: ${word(value)}`).join("\n");
    box.hidden = false;
    box.scrollIntoView({ block: "center" });
  };

  // Fields that belong to one choice are there when it is chosen, and not sent otherwise.
  for (const choice of $$("[data-choose]")) {
    const choose = () => {
      for (const part of $$(`[data-when^="${choice.dataset.choose}="]`)) {
        part.disabled = part.dataset.when !== `${choice.dataset.choose}=${choice.value}`;
        part.hidden = part.disabled;
      }
    };
    choice.addEventListener("change", choose);
    choose();
  }

  // A rule's request beside the rule, while it is typed.
  const rule = $("form[data-preview]");
  if (rule) {
    const [box, chosen, own, sample] = ["preview", "preview-event", "preview-own", "preview-sample"].map((id) => document.getElementById(id));
    const node = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name || "" });
    const outcome = (name, word, text) => {
      const line = node("p", " " + text);
      line.prepend(node("span", word, "badge " + name));
      return line;
    };
    const drawn = (made) => {
      if (made.outcome === "otherType") return [outcome("warn", "another type", "the rule is not for events of this type")];
      if (made.outcome === "filtered") return [outcome("", "filtered", made.reason || "the filter does not take it")];
      if (made.outcome !== "request") return [outcome("bad", "can't be made", `${made.field}: ${made.reason}`)];
      const { method, url, path, headers, body, bodyText } = made.request;
      const head = [`${method} ${url || path}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join("\n");
      const parts = [outcome("good", "sends", "exactly this" + (made.orderingKey ? `, in the order of ${made.orderingKey}` : "")), node("pre", head)];
      if (bodyText) parts.push(node("pre", body === null ? bodyText : JSON.stringify(body, null, 2)));
      return parts;
    };
    let timer, turn = 0;
    const look = async () => {
      const mine = ++turn;
      const { call: what, wrong } = read(rule);
      const body = { rule: { name: "preview", ...what?.body } };
      if (wrong) return box.replaceChildren(outcome("bad", "not yet", `${wrong[0].field}: ${wrong[0].reason}`));
      if (!body.rule.eventType) return;
      if (chosen.value) body.eventId = chosen.value;
      else try { body.event = JSON.parse(sample.value); } catch (error) { return box.replaceChildren(outcome("bad", "the event", `is no JSON: ${error.message}`)); }
      const { ok, answer } = await call({ method: "POST", path: "/api/v1/registry/rules:evaluate", body }).catch(() => ({ answer: {} }));
      if (mine !== turn) return;
      const problems = (answer.errors || []).map(({ field, reason }) => outcome("bad", field.replace(/^rule\./, ""), reason));
      box.replaceChildren(...(ok ? drawn(answer.data) : problems.length ? problems : [outcome("bad", "no answer", answer.message || "The hub can't be reached.")]));
    };
    const soon = () => { own.hidden = chosen.value !== ""; clearTimeout(timer); timer = setTimeout(look, 250); };
    for (const part of [rule, chosen, sample]) part.addEventListener("input", soon);
    soon();
  }

  // For scripts of single pages.
  window.seawall = { call, toast, refresh, read, show, clear };
})();
