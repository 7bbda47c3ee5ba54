import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import LockPlayground from './LockPlayground.vue';
import './custom.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('LockPlayground', LockPlayground);
  },
} satisfies Theme;
