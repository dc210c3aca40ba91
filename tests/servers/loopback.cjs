// Preloaded into servers that would listen on every address: they listen on loopback only, and say on which port.
'use strict';
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  const done = rest.find((argument) => typeof argument === 'function');
  this.once('listening', () => console.error(`Listening on 127.0.0.1:${this.address().port}`));
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, done);
};
