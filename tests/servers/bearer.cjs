// Preloaded into the conformance suite, which cannot send headers: every request of its process carries our token.
'use strict';
const path = require('node:path');
const { Agent, setGlobalDispatcher } = require(path.join(process.env.NODE_SERVERS, 'undici'));

const token = `Bearer ${process.env.CONFORMANCE_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) return [...headers, 'authorization', token];
  if (headers && typeof headers[Symbol.iterator] === 'function') return [...headers, ['authorization', token]];
  return { ...headers, authorization: token };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) => dispatch({ ...options, headers: withToken(options.headers) }, handler)),
);
