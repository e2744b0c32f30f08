// @ts-check
// Loaded before a process of a siege: its clocks jump. What says the time of day goes an hour back and forth; what measures
// time loses or gains some seconds, as after a virtual machine was moved.

const dateNow = Date.now;
const performanceNow = performance.now.bind(performance);
let [day, measured] = [0, 0];
Date.now = () => dateNow() + day;
performance.now = () => performanceNow() + measured;
setInterval(() => {
  day = Math.round((Math.random() - 0.5) * 7_200_000);
  measured += Math.random() < 0.5 ? Math.random() * 2_000 : 0;
}, 1_500).unref();
