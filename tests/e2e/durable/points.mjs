// @ts-check
// Where an order is killed: at the beginning of a step's work, at its end before it is stored, and after that; while a person is
// awaited, too.

export const POINTS = [
  "begin begin", "begin t0/model", "end t0/model", "begin t0/tool/1-payment", "end t0/tool/1-payment", "stored t0/tool/2-delivery",
  "end t1/model", "end t1/approve/0/tell", "stored t1/approve/0/tell", "begin t1/tool/0-refund", "end t1/tool/0-refund", "begin t2/model", "end t2/model",
];
