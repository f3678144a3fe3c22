'use strict';
(() => {
  const at = (id) => document.getElementById(id);
  // Everything is put in as text, so nothing in the description can become markup.
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.filter((child) => child !== undefined && child !== ''));
    return node;
  };
  // What stands between backticks is code.
  const marked = (text) => (text || '').split('`').map((part, at) => (at % 2 ? make('code', {}, part) : part));
  let spec;
  let count = 0;

  const resolved = (schema) => {
    if (!schema || !schema.$ref) return schema || {};
    const target = schema.$ref.split('/').slice(1).reduce((found, part) => found[part], spec);
    return { ...target, ...(schema.description ? { description: schema.description } : {}) };
  };

  // A schema as people read it: one line for each field.
  const lines = (schema, depth, seen) => {
    const name = schema && schema.$ref;
    if (name && (seen.includes(name) || depth > 5)) return [name.split('/').pop()];
    const inner = name ? [...seen, name] : seen;
    const whole = resolved(schema);
    const pad = '  '.repeat(depth);
    const choices = whole.oneOf || whole.anyOf;
    if (choices) {
      const real = choices.filter((one) => one.type !== 'null');
      const null_ = real.length < choices.length ? ' or null' : '';
      if (real.length === 1) {
        const only = lines(real[0], depth, inner);
        only[only.length - 1] += null_;
        return only;
      }
      return ['one of'].concat(...real.map((one) => {
        const [first, ...rest] = lines(one, depth + 1, inner);
        return [`${pad}- ${first}`, ...rest];
      }));
    }
    const types = [].concat(whole.type || 'anything');
    const orNull = types.includes('null') && types.length > 1 ? ' or null' : '';
    if (whole.properties) {
      const out = ['{'];
      for (const [key, value] of Object.entries(whole.properties)) {
        const optional = (whole.required || []).includes(key) ? '' : '?';
        const [first, ...rest] = lines(value, depth + 1, inner);
        const said = value.description || (value.$ref ? resolved(value).description : '');
        out.push(`${pad}  ${key}${optional}: ${first}${said ? '   // ' + said : ''}`, ...rest);
      }
      return out.concat(`${pad}}${orNull}`);
    }
    if (types.includes('array')) {
      const inside = lines(whole.items, depth, inner);
      inside[0] = 'list of ' + inside[0];
      return inside;
    }
    if (types.includes('object')) return ['object' + orNull];
    if (whole.const !== undefined) return [JSON.stringify(whole.const)];
    if (whole.enum) return [whole.enum.map((one) => JSON.stringify(one)).join(' | ')];
    const type = types.filter((one) => one !== 'null').join(' or ') || 'null';
    return [(whole.format || type) + orNull];
  };
  const readable = (schema) => lines(schema, 0, []).join('\n');

  const example = (schema) => {
    const whole = resolved(schema);
    if (whole.examples) return whole.examples[0];
    if (whole.type === 'array') return [example(whole.items)];
    return {};
  };

  const field = (parameter) => {
    const id = `f${++count}`;
    const schema = resolved(parameter.schema);
    const words = schema.enum || (schema.type === 'boolean' ? [true, false] : undefined);
    const input = words
      ? make('select', { id }, make('option', { value: '' }, '(not set)'), ...words.map((word) => make('option', {}, String(word))))
      : make('input', { id, autocomplete: 'off', spellcheck: 'false', required: parameter.required, placeholder: schema.default !== undefined ? String(schema.default) : undefined });
    const place = parameter.in === 'header' ? ' (header)' : parameter.in === 'path' ? ' (path)' : '';
    const label = make('label', { for: id }, parameter.name + place, parameter.required ? ' *' : '', input, make('small', {}, ...marked(parameter.description)));
    return { parameter, input, label };
  };

  const request = (method, path, fields, body, kind) => {
    const headers = {};
    const query = new URLSearchParams();
    let url = path;
    for (const { parameter, input } of fields) {
      const value = input.value.trim();
      if (parameter.in === 'path') url = url.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (value && parameter.in === 'query') query.append(parameter.name, value);
      else if (value) headers[parameter.name] = value;
    }
    const key = at('key').value.trim();
    if (key && path.startsWith('/api/')) headers.Authorization = `Bearer ${key}`;
    const options = { method: method.toUpperCase(), headers, credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' };
    if (body) {
      options.body = body;
      headers['Content-Type'] = kind;
    }
    return [url + (query.size ? `?${query}` : ''), options];
  };

  const send = async (button, out, made) => {
    button.disabled = true;
    const status = make('p', {}, 'Sent …');
    out.replaceChildren(status);
    try {
      const [url, options] = made();
      const began = performance.now();
      const response = await fetch(url, options);
      const text = await response.text();
      const took = Math.round(performance.now() - began);
      status.textContent = `${response.status} ${response.statusText}, after ${took} ms`;
      status.className = response.ok ? 'good' : 'bad';
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* It is no JSON, and is shown as it is. */ }
      const tag = response.headers.get('etag');
      if (tag) out.append(make('p', { class: 'note' }, `ETag: ${tag}`));
      out.append(make('pre', { tabindex: '0', 'aria-label': 'Response' }, shown || '(empty)'));
    } catch (error) {
      status.textContent = `No response: ${error.message}`;
      status.className = 'bad';
    }
    button.disabled = false;
  };

  const fold = (title, ...children) => make('details', {}, make('summary', { class: 'small' }, title), ...children);

  // The inside of an operation, made when it is opened: most never are.
  const inside = (method, path, operation) => {
    const node = make('form', { class: 'in', novalidate: true });
    for (const part of (operation.description || '').split('\n\n').filter(Boolean)) node.append(make('p', {}, ...marked(part)));
    const fields = (operation.parameters || []).map(field);
    if (fields.length) node.append(make('div', { class: 'fields' }, ...fields.map((one) => one.label)));
    const content = operation.requestBody && operation.requestBody.content;
    let area, kinds;
    if (content) {
      const [first] = Object.keys(content);
      const id = `f${++count}`;
      area = make('textarea', { id, spellcheck: 'false' });
      kinds = make('select', { 'aria-label': 'Media type of the body' }, ...Object.keys(content).map((kind) => make('option', {}, kind)));
      const shape = make('pre', { tabindex: '0', 'aria-label': 'Schema' });
      const fill = () => {
        const { schema } = content[kinds.value];
        area.value = JSON.stringify(example(schema), null, 2);
        area.rows = Math.min(20, area.value.split('\n').length + 1);
        shape.textContent = readable(schema);
      };
      kinds.value = first;
      kinds.hidden = Object.keys(content).length === 1;
      kinds.addEventListener('change', fill);
      fill();
      node.append(make('h3', {}, make('label', { for: id }, operation.requestBody.required ? 'Body *' : 'Body')), kinds, area, fold('Schema', shape));
    }
    const out = make('div', { role: 'status', 'aria-live': 'polite' });
    const button = make('button', { type: 'submit' }, 'Send');
    const made = () => request(method, path, fields, area && area.value.trim(), kinds && kinds.value);
    node.addEventListener('submit', (event) => {
      event.preventDefault();
      const empty = fields.find((one) => one.parameter.required && !one.input.value.trim());
      if (empty) {
        out.replaceChildren(make('p', { class: 'bad' }, `\`${empty.parameter.name}\` is required.`));
        empty.input.focus();
        return;
      }
      send(button, out, made);
    });
    if (area) area.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) node.requestSubmit();
    });
    const answers = Object.entries(operation.responses).map(([status, answer]) => make('tr', {}, make('td', {}, status), make('td', {}, ...marked(answer.description))));
    const good = Object.entries(operation.responses).filter(([status]) => status < '300').map(([status, answer]) => {
      const [kind, { schema }] = Object.entries(answer.content)[0];
      return make('pre', { tabindex: '0', 'aria-label': `Response ${status}` }, `${status} ${kind}\n${readable(schema)}`);
    });
    node.append(button, out, fold('Responses', make('table', {}, make('tbody', {}, ...answers)), ...good));
    return node;
  };

  const show = () => {
    at('about').replaceChildren(...marked(spec.info.description), ' ', make('a', { href: '/openapi.json' }, 'openapi.json'));
    const main = at('operations');
    const all = [];
    for (const tag of spec.tags) {
      const section = make('section', {}, make('h2', { id: tag.name }, tag.name, ' ', make('small', {}, tag.description)));
      for (const [path, methods] of Object.entries(spec.paths)) {
        for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
          const operation = methods[method];
          if (!operation) continue;
          if (!operation.tags.includes(tag.name)) continue;
          const summary = make('summary', {}, make('span', { class: 'method' }, method.toUpperCase()), make('span', { class: 'path' }, path), make('span', { class: 'about' }, operation.summary));
          const node = make('details', { class: 'op', id: operation.operationId }, summary);
          node.addEventListener('toggle', () => {
            if (node.open && node.children.length === 1) node.append(inside(method, path, operation));
          });
          section.append(node);
          all.push({ node, section, words: `${method} ${path} ${operation.summary}`.toLowerCase() });
        }
      }
      if (section.children.length > 1) main.append(section);
    }
    const rows = spec['x-errors'].map((one) => make('tr', {}, make('td', {}, one.code), make('td', {}, String(one.status)), make('td', {}, ...marked(`${one.meaning}. ${one.remedy}.`))));
    main.append(make('section', {}, make('h2', { id: 'errors' }, 'errors ', make('small', {}, 'Meaning and remedy of each code')), make('table', {}, make('tbody', {}, ...rows))));
    at('find').addEventListener('input', () => {
      const wanted = at('find').value.trim().toLowerCase();
      for (const { node, words } of all) node.hidden = !words.includes(wanted);
      for (const { section } of all) section.hidden = ![...section.querySelectorAll('details.op')].some((one) => !one.hidden);
    });
    const linked = location.hash && document.getElementById(location.hash.slice(1));
    if (linked) {
      linked.open = true;
      linked.scrollIntoView();
    }
  };

  document.querySelector('form.tools').addEventListener('submit', (event) => event.preventDefault());
  fetch('/openapi.json').then((response) => response.json()).then((found) => {
    spec = found;
    show();
  }).catch((error) => {
    at('about').textContent = `Can't load the description: ${error.message}`;
  });
})();
