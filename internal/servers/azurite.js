'use strict';

// Loaded into Azurite before its own code. Azure has a write on disk before it answers. Azurite
// has its tables in memory, and saves them every five seconds: a kill would lose writes that were
// acknowledged. So here no answer leaves before the tables are saved, unless they stay in memory.

const Module = require('module');
const http = require('http');
const net = require('net');

const tables = new Set();
const load = Module._load;
Module._load = function (request, ...rest) {
  if (request.endsWith('/Telemetry')) { // which takes half of the time of a start
    return { AzuriteTelemetryClient: new Proxy({}, { get: () => () => undefined }) };
  }
  const loaded = load.call(this, request, ...rest);
  if (request === 'lokijs' && !loaded.saved) {
    loaded.saved = true;
    const collection = loaded.prototype.getCollection;
    loaded.prototype.getCollection = function (name) {
      tables.add(this);
      return collection.call(this, name);
    };
  }
  return loaded;
};

// Node.js ends a connection that was idle for five seconds, even if a request is on its way.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  this.keepAliveTimeout = 0;
  return listen.apply(this, args);
};

const write = (table) => new Promise((done, failed) => {
  table.saveDatabase((err) => (err ? failed(err) : done()));
});

// One save at a time, for all answers that wait when it begins.
let saving = Promise.resolve();
let next = null;
const save = () => {
  next ??= saving.then(() => {
    next = null;
    return saving = Promise.all([...tables].filter((t) => t.autosaveDirty()).map(write));
  });
  return next;
};

if (!process.argv.includes('--inMemoryPersistence')) {
  const end = http.ServerResponse.prototype.end;
  http.ServerResponse.prototype.end = function (...args) {
    save().then(() => end.apply(this, args));
    return this;
  };
}
