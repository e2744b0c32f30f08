import Link from "next/link";

export default function Page() {
  return <ul><li><Link href="/here">The agent is in the page</Link></li><li><Link href="/server">The agent is on the server</Link></li></ul>;
}
