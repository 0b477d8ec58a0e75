import { z } from "zod";

// Compiled parsers need `new Function`, which the page's policy refuses.
z.config({ jitless: true });
