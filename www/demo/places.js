// @ts-check
// Maps city and country names to IANA time zones.

/**
 * Maps a zone to the names that people use for it. A country with a single zone is listed too.
 * @type {{ [zone: string]: string }}
 */
const NAMES = {
  "Europe/Oslo": "Oslo, Bergen, Trondheim, Stavanger, Norway", "Europe/Stockholm": "Stockholm, Gothenburg, Malmo, Sweden",
  "Europe/Copenhagen": "Copenhagen, Aarhus, Denmark", "Europe/Helsinki": "Helsinki, Tampere, Finland", "Atlantic/Reykjavik": "Reykjavik, Iceland",
  "Europe/London": "London, Edinburgh, Manchester, Glasgow, Cardiff, Belfast, England, Scotland, UK, United Kingdom", "Europe/Dublin": "Dublin, Cork, Ireland",
  "Europe/Paris": "Paris, Lyon, Marseille, Nice, Toulouse, France", "Europe/Berlin": "Berlin, Hamburg, Munich, Frankfurt, Cologne, Stuttgart, Leipzig, Germany",
  "Europe/Amsterdam": "Amsterdam, Rotterdam, Utrecht, Netherlands", "Europe/Brussels": "Brussels, Antwerp, Ghent, Belgium", "Europe/Luxembourg": "Luxembourg",
  "Europe/Zurich": "Zurich, Geneva, Bern, Basel, Lausanne, Switzerland", "Europe/Vienna": "Vienna, Salzburg, Graz, Innsbruck, Austria",
  "Europe/Rome": "Rome, Milan, Naples, Turin, Florence, Venice, Bologna, Italy", "Europe/Madrid": "Madrid, Barcelona, Seville, Valencia, Bilbao, Spain",
  "Europe/Lisbon": "Lisbon, Porto, Portugal", "Europe/Athens": "Athens, Thessaloniki, Greece", "Europe/Prague": "Prague, Brno, Czechia",
  "Europe/Warsaw": "Warsaw, Krakow, Gdansk, Wroclaw, Poland", "Europe/Budapest": "Budapest, Hungary", "Europe/Bucharest": "Bucharest, Romania",
  "Europe/Sofia": "Sofia, Bulgaria", "Europe/Belgrade": "Belgrade, Serbia", "Europe/Zagreb": "Zagreb, Croatia", "Europe/Ljubljana": "Ljubljana, Slovenia",
  "Europe/Bratislava": "Bratislava, Slovakia", "Europe/Vilnius": "Vilnius, Lithuania", "Europe/Riga": "Riga, Latvia", "Europe/Tallinn": "Tallinn, Estonia",
  "Europe/Kyiv": "Kyiv, Kiev, Lviv, Odesa, Ukraine", "Europe/Moscow": "Moscow, Saint Petersburg, St Petersburg", "Europe/Istanbul": "Istanbul, Ankara, Izmir, Turkey",
  "Africa/Cairo": "Cairo, Alexandria, Egypt", "Africa/Lagos": "Lagos, Abuja, Nigeria", "Africa/Nairobi": "Nairobi, Mombasa, Kenya",
  "Africa/Johannesburg": "Johannesburg, Cape Town, Durban, Pretoria, South Africa", "Africa/Casablanca": "Casablanca, Marrakesh, Rabat, Morocco",
  "Africa/Accra": "Accra, Ghana", "Africa/Addis_Ababa": "Addis Ababa, Ethiopia", "Africa/Algiers": "Algiers, Algeria", "Africa/Tunis": "Tunis, Tunisia", "Africa/Dakar": "Dakar, Senegal",
  "Asia/Jerusalem": "Jerusalem, Tel Aviv, Israel", "Asia/Beirut": "Beirut, Lebanon", "Asia/Riyadh": "Riyadh, Jeddah, Mecca, Saudi Arabia", "Asia/Baghdad": "Baghdad, Iraq",
  "Asia/Tehran": "Tehran, Iran", "Asia/Dubai": "Dubai, Abu Dhabi, United Arab Emirates, UAE", "Asia/Qatar": "Doha, Qatar", "Asia/Karachi": "Karachi, Lahore, Islamabad, Pakistan",
  "Asia/Kolkata": "Mumbai, Delhi, New Delhi, Bangalore, Bengaluru, Chennai, Kolkata, Calcutta, Hyderabad, India", "Asia/Kathmandu": "Kathmandu, Nepal",
  "Asia/Dhaka": "Dhaka, Bangladesh", "Asia/Colombo": "Colombo, Sri Lanka", "Asia/Tashkent": "Tashkent, Uzbekistan", "Asia/Yangon": "Yangon, Myanmar",
  "Asia/Bangkok": "Bangkok, Chiang Mai, Thailand", "Asia/Ho_Chi_Minh": "Ho Chi Minh City, Saigon, Hanoi, Vietnam", "Asia/Jakarta": "Jakarta, Bandung",
  "Asia/Makassar": "Bali, Denpasar", "Asia/Singapore": "Singapore", "Asia/Kuala_Lumpur": "Kuala Lumpur, Malaysia", "Asia/Manila": "Manila, Cebu, Philippines",
  "Asia/Shanghai": "Shanghai, Beijing, Shenzhen, Guangzhou, Chengdu, China", "Asia/Hong_Kong": "Hong Kong", "Asia/Taipei": "Taipei, Taiwan",
  "Asia/Seoul": "Seoul, Busan, South Korea, Korea", "Asia/Tokyo": "Tokyo, Osaka, Kyoto, Sapporo, Nagoya, Fukuoka, Japan", "Asia/Ulaanbaatar": "Ulaanbaatar, Mongolia",
  "Australia/Sydney": "Sydney, Canberra", "Australia/Melbourne": "Melbourne", "Australia/Brisbane": "Brisbane", "Australia/Perth": "Perth", "Australia/Adelaide": "Adelaide",
  "Australia/Darwin": "Darwin", "Australia/Hobart": "Hobart", "Pacific/Auckland": "Auckland, Wellington, Christchurch, New Zealand", "Pacific/Fiji": "Suva, Fiji",
  "Pacific/Honolulu": "Honolulu, Hawaii", "America/Anchorage": "Anchorage, Alaska",
  "America/Los_Angeles": "Los Angeles, San Francisco, Seattle, San Diego, Las Vegas, LA, California", "America/Vancouver": "Vancouver",
  "America/Denver": "Denver, Salt Lake City", "America/Phoenix": "Phoenix, Arizona", "America/Chicago": "Chicago, Dallas, Houston, Austin, New Orleans, Texas", "America/Winnipeg": "Winnipeg",
  "America/New_York": "New York, NYC, Boston, Washington, Philadelphia, Miami, Atlanta, Detroit", "America/Toronto": "Toronto, Ottawa, Montreal, Quebec", "America/Halifax": "Halifax",
  "America/St_Johns": "St Johns, Newfoundland", "America/Mexico_City": "Mexico City, Guadalajara", "America/Havana": "Havana, Cuba", "America/Panama": "Panama", "America/Costa_Rica": "Costa Rica",
  "America/Bogota": "Bogota, Medellin, Colombia", "America/Lima": "Lima, Cusco, Peru", "America/Guayaquil": "Quito, Guayaquil, Ecuador", "America/Caracas": "Caracas, Venezuela",
  "America/La_Paz": "La Paz, Bolivia", "America/Santiago": "Santiago, Chile", "America/Sao_Paulo": "Sao Paulo, Rio de Janeiro, Rio, Brasilia, Brazil", "America/Asuncion": "Asuncion, Paraguay",
  "America/Argentina/Buenos_Aires": "Buenos Aires, Argentina", "America/Montevideo": "Montevideo, Uruguay",
};

/** Maps a folded name to [the name as written, zone]. @type {Map<string, [string, string]>} */
const PLACES = new Map();
for (const [zone, names] of Object.entries(NAMES)) {
  for (const name of names.split(", ").filter(Boolean)) PLACES.set(fold(name), [name, zone]);
}

/**
 * Returns a place and its time zone for a city or country, an IANA zone, the last part of one, or `UTC+2`.
 *
 * @param {string} text
 * @returns {{ name: string, zone: string } | undefined}
 */
export function placeNamed(text) {
  const wanted = text.trim();
  const known = PLACES.get(fold(wanted)) ?? PLACES.get(fold(wanted.split(",")[0] ?? ""));
  if (known) return { name: known[0], zone: known[1] };
  const offset = /^(?:UTC|GMT)\s*([+-])\s*(\d{1,2})(?::?00)?$/i.exec(wanted);
  // The sign of these IANA zones is reversed: UTC+2 is called Etc/GMT-2.
  if (offset) return checked(`UTC${offset[1]}${Number(offset[2])}`, `Etc/GMT${offset[1] === "+" ? "-" : "+"}${Number(offset[2])}`);
  if (/^(utc|gmt|z)$/i.test(wanted)) return { name: "UTC", zone: "UTC" };
  if (/^[A-Za-z_]+(\/[A-Za-z0-9_+-]+)+$/.test(wanted)) return checked(undefined, wanted);
  return lastPartOfZone(wanted);
}

/**
 * Returns the known names close to a misspelt one, the closest first.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function similarPlaces(text) {
  const wanted = fold(text);
  return [...PLACES]
    .map(([key, [name]]) => ({ name, distance: editDistance(wanted, key) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ name }) => name);
}

/** Removes accents, case and punctuation. @param {string} text */
function fold(text) {
  return text.normalize("NFD").replace(/[\u0300-\u036f.'’]/g, "").replace(/ø/gi, "o").replace(/ł/gi, "l").replace(/[\s_-]+/g, " ").trim().toLowerCase();
}

/** @param {string | undefined} name @param {string} zone */
function checked(name, zone) {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    // Accepts any case and keeps the name that was asked for: some engines report
    // Asia/Calcutta for Asia/Kolkata.
    const spelt = zone.toLowerCase().replace(/(^|[/_-])([a-z])/g, (letter) => letter.toUpperCase());
    return { name: name ?? spelt, zone: name ? zone : spelt };
  } catch {
    return undefined;
  }
}

/** @param {string} wanted */
function lastPartOfZone(wanted) {
  const zones = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  const zone = zones.find((candidate) => fold(candidate.slice(candidate.lastIndexOf("/") + 1)) === fold(wanted));
  return zone ? { name: zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " "), zone } : undefined;
}

/**
 * Counts the letters to add, drop, change, or swap with a neighbour.
 * @param {string} left @param {string} right
 */
function editDistance(left, right) {
  /** @type {number[][]} */
  const rows = [Array.from({ length: right.length + 1 }, (_, index) => index)];
  const at = (/** @type {number} */ i, /** @type {number} */ j) => rows[i]?.[j] ?? Infinity;
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= right.length; j += 1) {
      const changed = at(i - 1, j - 1) + (left[i - 1] === right[j - 1] ? 0 : 1);
      const swapped = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1] ? at(i - 2, j - 2) + 1 : Infinity;
      row.push(Math.min(changed, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(left.length, right.length);
}
