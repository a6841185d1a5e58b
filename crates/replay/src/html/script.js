// Shows exact values under the pointer. The page is complete without this script.
(function () {
  'use strict';
  var tip = document.createElement('div');
  tip.id = 'tip';
  tip.hidden = true;
  document.body.appendChild(tip);

  // Native tooltips appear late and do not work on touch screens, so their text is moved to
  // attributes.
  document.querySelectorAll('svg title').forEach(function (t) {
    t.parentNode.setAttribute('data-tip', t.textContent);
    t.remove();
  });

  function three(v) { return v >= 1000 ? Math.round(v).toLocaleString('en') : String(+v.toPrecision(3)); }
  function time(ns) {
    if (ns < 1e3) return Math.round(ns) + ' ns';
    if (ns < 1e6) return three(ns / 1e3) + ' µs';
    if (ns < 1e9) return three(ns / 1e6) + ' ms';
    return three(ns / 1e9) + ' s';
  }
  function size(b) {
    var units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'], i = 0;
    while (b >= 1024 && i < 4) { b /= 1024; i++; }
    return +b.toPrecision(4) + ' ' + units[i];
  }
  function percent(v) { return +(v * 100).toPrecision(4) + ' %'; }
  function int(v) { return v.toLocaleString('en'); }

  // Formatters by kind of drawing: arguments are the data, and the position from 0 to 1 in both
  // directions.
  var kinds = {
    wear: function (d, x, y) {
      var column = Math.min(d.columns - 1, Math.floor(x * d.columns));
      var row = Math.min(d.rows.length - 1, Math.floor(y * d.rows.length));
      var i = row * d.columns + column;
      if (i >= d.mean.length) return null;
      var from = i * d.groups, to = Math.min(d.total, from + d.groups) - 1;
      var where = from === to ? d.what + ' ' + int(from) : d.what + 's ' + int(from) + ' to ' + int(to);
      if (d.named) where += ' (' + d.rows[row] + ')';
      return where + '\n' + (from === to ? int(d.max[i]) + ' ' + d.cycles
        : 'mean ' + three(d.mean[i]) + ', most ' + int(d.max[i]) + ' ' + d.cycles);
    },
    lanes: function (d, x, y) {
      var row = Math.min(d.rows.length - 1, Math.floor(y * d.rows.length));
      var bin = Math.min(d.bins - 1, Math.floor(x * d.bins));
      if (!d.busy[row]) return d.rows[row] + '\nno bus of its own';
      var v = d.busy[row][bin] || 0;
      return d.rows[row] + '\n' + time(bin * d.bin) + ' to ' + time((bin + 1) * d.bin) + ': busy ' + percent(v / 1e4);
    },
    places: function (d, x) {
      var i = Math.min(d.data.length - 1, Math.floor(x * d.volume / d.slice)), all = d.data[i], sum = 0;
      all.forEach(function (v) { sum += v; });
      return size(i * d.slice) + ' to ' + size(Math.min(d.volume, (i + 1) * d.slice)) + '\n' +
        d.names.map(function (n, k) { return n + ': ' + int(all[k]) + ' pages (' + percent(sum ? all[k] / sum : 0) + ')'; }).join('\n');
    },
    distribution: function (d, x) {
      var t = Math.pow(10, d.from + x * (d.to - d.from));
      return (d.tail ? 'longer than ' : 'at most ') + time(t) + '\n' + d.series.map(function (s) {
        var below = 0, i = 0;
        for (; i < s.to.length && s.to[i] <= t; i++) below += s.count[i];
        var all = s.all || 1;
        return s.name + ': ' + percent(d.tail ? 1 - below / all : below / all);
      }).join('\n');
    }
  };

  function place(e, text) {
    tip.textContent = text;
    tip.hidden = false;
    var w = tip.offsetWidth, h = tip.offsetHeight;
    var left = e.clientX + 14, top = e.clientY + 16;
    if (left + w > innerWidth - 6) left = Math.max(6, e.clientX - w - 14);
    if (top + h > innerHeight - 6) top = Math.max(6, e.clientY - h - 12);
    tip.style.left = left + 'px';
    tip.style.top = top + 'px';
  }

  var crossed = null;
  function clear() {
    tip.hidden = true;
    if (crossed) crossed.style.visibility = 'hidden';
    crossed = null;
  }

  function show(e) {
    clear();
    var field = e.target.closest && e.target.closest('[data-kind]');
    if (field) {
      var box = field.getBoundingClientRect();
      if (!field.values) field.values = JSON.parse(field.getAttribute('data-values'));
      var x = Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
      var y = Math.min(1, Math.max(0, (e.clientY - box.top) / box.height));
      var text = kinds[field.getAttribute('data-kind')](field.values, x, y);
      var line = field.parentNode.querySelector('.cross');
      if (line) {
        var at = +field.getAttribute('x') + x * field.getAttribute('width');
        line.setAttribute('x1', at);
        line.setAttribute('x2', at);
        line.style.visibility = 'visible';
        crossed = line;
      }
      if (text) place(e, text);
      return;
    }
    var own = e.target.closest && e.target.closest('[data-tip]');
    if (own) place(e, own.getAttribute('data-tip'));
  }

  document.addEventListener('pointermove', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', clear, { passive: true });
  document.documentElement.addEventListener('pointerleave', clear);
  addEventListener('beforeprint', function () {
    clear();
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  });
})();
